"""Broken products, by name: each must be caught, and by the rule that it breaks.

Of the hazards in the design notes these do not exist where work and requests are one database:
H12 (a flushed store of marks), H13-H15 (a broker's requeues, limits and deletions), H18 on a broker
(SQL fences the settle), H24-H25 and H32-H33 (exchanges, alternate exchanges, un-numbered requests,
delay queues), H36 (callers' own transactions), H39-H44 (broker consumers, prefetch, marks). H16
(requests that multiply) cannot be written down: the resource is the request's primary key; that
cycles do not multiply instead is the rule ``spin``. H3 needs a version that repeats, as a clock's.
"""

from __future__ import annotations

from simulation.mutants.changing import CHANGING
from simulation.mutants.claiming import CLAIMING
from simulation.mutants.fencing import FENCING
from simulation.mutants.finishing import FINISHING
from simulation.mutants.operating import OPERATING
from simulation.mutants.publishing import PUBLISHING
from simulation.mutants.serving import SERVING

MUTANTS = {
    mutant.name: mutant
    for mutant in (*PUBLISHING, *CLAIMING, *FENCING, *FINISHING, *CHANGING, *SERVING, *OPERATING)
}
