"""The mathematics of a fit. A map of the room:

family           the curve families r + a g(C; p, q): eq. 1 and five others
projection       (r, a) in closed form on a dense grid over (p, q), then Gauss-Newton
anchor           prior of R_0 from the reading before RL
noise            sampling noise and autocorrelated run noise
sums             weighted sums over readings, in the eigenbasis of the noise
zoom             finds the region of shapes that holds the posterior
truncated        standard normals between two bounds
grid_density     log density of every shape and noise, given their sums
chebyshev        polynomials in the shape, through a few points of a box
shape_density    sums and log density of the shapes in a box: by their curves, or for many readings by polynomials
posterior        draws of all parameters, given the readings
lack_of_fit      p-value of eq. 1 against curves that end differently
ceiling_profile  profile likelihood of A: misfit of the best curve at each fixed A, without the prior
"""

from typing import Literal

R0Mode = Literal["fixed", "anchored", "free"]
"""How R_0 is tied to the reading before RL: `fixed` takes the reading as R_0, `anchored` as a reading that may lie off
the law, `free` ignores it. The name stands here because options need it before SciPy."""
