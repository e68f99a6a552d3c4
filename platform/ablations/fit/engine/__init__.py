"""The mathematics of a fit. A map of the room:

family           the curve families r + a g(C; p, q): eq. 1 and five others
projection       (r, a) in closed form on a dense grid over (p, q), then Gauss-Newton
modes            how R_0 may be tied to the reading before RL
anchor           prior of R_0 from the reading before RL
noise            sampling noise and autocorrelated run noise
sums             weighted sums over readings, in the eigenbasis of the noise
zoom             finds the region of shapes that holds the posterior
truncated        standard normals between two bounds
posterior        draws of all parameters, given the readings
lack_of_fit      p-value of eq. 1 against curves that end differently
ceiling_profile  profile likelihood of A: misfit of the best curve at each fixed A, without the prior
"""
