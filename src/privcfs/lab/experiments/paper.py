"""Numbers printed in the paper (Yao and Zhao, preprint), to stand beside ours."""

PRICES = ("0.5", "1", "2", "4", "8")

# (population, data, disclosed share): ceiling (starCF), then the valid rate at each price.
FRONTIER: dict[tuple[str, str, float], tuple[float, ...]] = {
    ("general", "cora", 0.5): (0.167, 0.078, 0.089, 0.098, 0.116, 0.139),
    ("general", "cora", 0.7): (0.250, 0.117, 0.123, 0.142, 0.172, 0.213),
    ("general", "cora", 1.0): (0.312, 0.136, 0.146, 0.166, 0.211, 0.260),
    ("general", "citeseer", 0.5): (0.146, 0.076, 0.085, 0.091, 0.118, 0.139),
    ("general", "citeseer", 0.7): (0.229, 0.114, 0.128, 0.152, 0.184, 0.219),
    ("general", "citeseer", 1.0): (0.292, 0.145, 0.157, 0.181, 0.223, 0.268),
    ("borderline", "cora", 0.5): (0.500, 0.295, 0.328, 0.369, 0.420, 0.484),
    ("borderline", "cora", 0.7): (0.633, 0.373, 0.392, 0.448, 0.525, 0.614),
    ("borderline", "cora", 1.0): (0.900, 0.513, 0.544, 0.631, 0.742, 0.866),
    ("borderline", "citeseer", 0.5): (0.367, 0.172, 0.199, 0.235, 0.288, 0.348),
    ("borderline", "citeseer", 0.7): (0.567, 0.287, 0.314, 0.357, 0.447, 0.534),
    ("borderline", "citeseer", 1.0): (0.767, 0.397, 0.439, 0.500, 0.611, 0.738),
}

# (data, arm): ceiling and valid rate at epsilon 8, borderline targets, half disclosed.
DECOMPOSITION: dict[tuple[str, str], tuple[float, float]] = {
    ("cora", "edges-only"): (0.500, 0.478),
    ("cora", "features-only"): (0.000, 0.000),
    ("cora", "one-hop"): (0.500, 0.485),
    ("citeseer", "edges-only"): (0.367, 0.341),
    ("citeseer", "features-only"): (0.000, 0.000),
    ("citeseer", "one-hop"): (0.367, 0.349),
}
