"""The public schema of features: names, units, ranges, costs and rules, so that an answer can name a change of a value.

Everything here is public. A feature has *levels*: exact numbers in the unit of people, or the positions of the options
of a category. The schema says which levels a person can reach, and which numbers of the feature table they stand for.
"""
