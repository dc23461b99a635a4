"""What rounds say about a figure that was asked for.

The figure is the median of the rounds' values. How sure it is, is told without knowing how a machine's noise is
distributed: the median of what could be measured lies between the k-th least and the k-th greatest of n values but for
2 P(binomial(n, 1/2) < k) (the sign test; David and Nagaraja, Order Statistics, 7.1). Of five rounds those are the least
and the greatest; more rounds forgive single ones. No round is left out, whatever happened to the machine meanwhile.
"""

import math
import statistics

DOUBT = 0.0625  # what five rounds leave, the fewest that are asked for


def interval(values):
    """(least, greatest) that the median may be; of fewer than five values with more doubt than DOUBT.

    >>> interval([3, 1, 2]), interval([5, 1, 4, 2, 3]), interval(range(9)), interval(range(25))
    ((1, 3), (1, 5), (1, 7), (7, 17))
    """
    ordered, n = sorted(values), len(values)
    k = 0
    while k + 1 <= n // 2 and 2 * sum(math.comb(n, i) for i in range(k + 1)) <= DOUBT * 2**n:
        k += 1
    k = max(k, 1)
    return ordered[k - 1], ordered[n - k]


def judge(values, least=None, most=None):
    """What was wanted, and "met" or "MISSED" by the median; "perhaps" if the interval has the other in it.

    >>> judge([1, 1, 1, 1, 1.1], most=1.1), judge([1, 1, 1, 1, 1.2], most=1.1), judge([2, 2, 2, 2, 3], most=1.1)
    ('<= 1.1 met', '<= 1.1 perhaps met', '<= 1.1 MISSED')
    >>> judge([5, 5, 5, 5, 4], least=5), judge([4, 4, 4, 5, 5], least=5), judge([1] + 8 * [6], least=5)
    ('>= 5 perhaps met', '>= 5 perhaps MISSED', '>= 5 met')
    """
    median, ends = statistics.median(values), interval(values)
    def good(value):
        return value >= least if least is not None else value <= most
    wanted = f">= {least:g}" if least is not None else f"<= {most:g}"
    words = "met" if good(median) else "MISSED"
    if any(good(end) != good(median) for end in ends):
        words = f"perhaps {words}"
    return f"{wanted} {words}"


def between(values):
    low, high = interval(values)
    return f"{low:.3f} .. {high:.3f}"
