"""The mathematics below a fit. A map of the room:

family           r + a g(C; p, q): what the engine must know of a family of curves; eq. 1 and five others
projection       (r, a) in closed form on a dense grid over (p, q), then Gauss-Newton
modes            how R_0 may be tied to the reading before RL
anchor           what the reading before RL says of R_0
noise            sampling noise and autocorrelated run noise
sums             the sums over readings that judge a curve, in the axes of the noise
zoom             where on the grid of shapes the posterior lies
truncated        standard normals between two ends
posterior        draws of everything, given the readings
lack_of_fit      p-value of eq. 1 against curves that end otherwise
ceiling_profile  profile likelihood of A: misfit of the best curve at each fixed A, without the prior
"""
