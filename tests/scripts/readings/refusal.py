# SPDX-License-Identifier: Apache-2.0
"""A file that a reader does not take."""


class Refused(Exception):
    """`lines` are those that are wrong, from 1; none where the whole file is."""

    def __init__(self, reason, lines=()):
        super().__init__(reason)
        self.lines = set(lines)

    def __str__(self):
        return f"a refusal ({self.args[0]})"
