"""Numbers printed in the paper (Yao and Zhao, preprint), to stand beside ours; and those of a second implementation."""

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

# Retention at epsilon 8 as printed.
RETENTION: dict[tuple[str, str, float], float] = {
    ("general", "cora", 0.5): 0.84,
    ("general", "cora", 0.7): 0.85,
    ("general", "cora", 1.0): 0.83,
    ("general", "citeseer", 0.5): 0.95,
    ("general", "citeseer", 0.7): 0.95,
    ("general", "citeseer", 1.0): 0.92,
    ("borderline", "cora", 0.5): 0.97,
    ("borderline", "cora", 0.7): 0.97,
    ("borderline", "cora", 1.0): 0.96,
    ("borderline", "citeseer", 0.5): 0.95,
    ("borderline", "citeseer", 0.7): 0.94,
    ("borderline", "citeseer", 1.0): 0.96,
}

# The joint arm with masks as defined, measured by a second, independent implementation (three seeds, range 1).
SECOND: dict[tuple[str, str, float], tuple[float, ...]] = {
    ("general", "cora", 0.5): (0.438, 0.129, 0.144, 0.175, 0.236, 0.334),
    ("general", "cora", 0.7): (0.500,),
    ("general", "cora", 1.0): (0.583,),
    ("general", "citeseer", 0.5): (0.438, 0.157, 0.173, 0.206, 0.272, 0.373),
    ("general", "citeseer", 0.7): (0.458,),
    ("general", "citeseer", 1.0): (0.604,),
    ("borderline", "cora", 0.5): (0.967, 0.595, 0.637, 0.715, 0.834, 0.938),
    ("borderline", "cora", 0.7): (0.967,),
    ("borderline", "cora", 1.0): (1.000,),
    ("borderline", "citeseer", 0.5): (1.000, 0.614, 0.659, 0.741, 0.864, 0.971),
    ("borderline", "citeseer", 0.7): (1.000,),
    ("borderline", "citeseer", 1.0): (1.000,),
}
SECOND_TARGETS = {"general": 48, "borderline": 30}

# (population, stage): the step down to it for Cora and CiteSeer, as the text prints it.
STEPS: dict[tuple[str, str], tuple[float | None, float | None]] = {
    ("borderline", "fixed support"): (-0.07, -0.17),
    ("borderline", "public prior"): (-0.40, -0.40),
    ("borderline", "epsilon 8"): (-0.02, -0.02),
    ("stratified", "fixed support"): (-0.58, -0.69),
    ("stratified", "public prior"): (-0.13, -0.10),
    ("stratified", "epsilon 8"): (None, None),
}

# (data, arm): ceiling and valid rate at epsilon 8, borderline targets, half disclosed.
DECOMPOSITION: dict[tuple[str, str], tuple[float, float]] = {
    ("cora", "edge-only"): (0.500, 0.478),
    ("cora", "feature-only"): (0.000, 0.000),
    ("cora", "joint"): (0.500, 0.485),
    ("citeseer", "edge-only"): (0.367, 0.341),
    ("citeseer", "feature-only"): (0.000, 0.000),
    ("citeseer", "joint"): (0.367, 0.349),
}

# Nodes, edges, features, classes, test accuracy.
DATASETS: dict[str, tuple[int, int, int, int, float]] = {
    "cora": (2708, 5278, 1433, 7, 0.809),
    "citeseer": (3327, 4552, 3703, 6, 0.682),
    "arxiv-core": (15000, 160944, 128, 40, 0.792),
}

# Disclosed share: ceiling, then the valid rate at 2, 4 and 8; ten borderline targets of the arxiv core, one seed.
TRANSFER: dict[float, tuple[float, float, float, float]] = {
    0.5: (1.000, 0.734, 0.838, 0.963),
    1.0: (1.000, 0.704, 0.831, 0.957),
}

# Standard errors of the rates at 8: the printed deviations over ten targets.
TRANSFER_ERROR = {0.5: 0.026 / 10**0.5, 1.0: 0.056 / 10**0.5}

# Same-operation-space control: ceiling, restricted NaiveDP, pollution, valid rate at 8.
SAME_OPERATIONS = {"cora": (0.500, 0.000, 0.733, 0.485), "citeseer": (0.367, 0.000, 0.700, 0.349)}

# Ablation, arm and data: ceiling, valid rate at 8 and empty rate at 8, where they are printed.
Ablation = tuple[float | None, float | None, float | None]
ABLATIONS: dict[tuple[str, str, str], Ablation] = {
    ("(a) sequential, seed 0", "edge-only", "cora"): (None, 0.688, None),
    ("(a) sequential, seed 0", "edge-only", "citeseer"): (None, 0.274, None),
    ("(a) one draw, seed 0", "edge-only", "cora"): (None, 0.679, None),
    ("(a) one draw, seed 0", "edge-only", "citeseer"): (None, 0.283, None),
    ("(b) weights .9 .05 .05, seed 0", "edge-only", "cora"): (0.700, 0.679, None),
    ("(b) weights .5 .4 .1, seed 0", "edge-only", "cora"): (0.700, 0.669, None),
    ("(c) soft, 0.7 disclosed", "edge-only", "cora"): (None, 0.602, None),
    ("(c) gated, 0.7 disclosed", "edge-only", "cora"): (0.633, 0.614, None),
    ("(d) 1.0 disclosed", "edge-only", "cora"): (0.900, 0.866, None),
    ("(d) 1.0 disclosed", "edge-only", "citeseer"): (0.767, 0.738, None),
    ("(d) 0.5 disclosed", "edge-only", "cora"): (0.500, 0.484, None),
    ("(d) 0.5 disclosed", "edge-only", "citeseer"): (0.367, 0.348, None),
    ("(h) one coin a pair, 0.5 disclosed", "edge-only", "cora"): (None, 0.654, None),
    ("(h) one coin a pair, 1.0 disclosed", "edge-only", "citeseer"): (None, 0.620, None),
    ("(i) 12 pairs, 12 features", "inert masks", "cora"): (0.500, 0.485, 0.004),
    ("(i) 12 pairs, 12 features", "inert masks", "citeseer"): (0.367, 0.349, 0.004),
    ("(i) 4 pairs, 4 features", "inert masks", "cora"): (0.500, None, 0.086),
    ("(i) 4 pairs, 4 features", "inert masks", "citeseer"): (0.367, None, 0.102),
    ("(i) two hops", "inert masks", "cora"): (0.567, 0.527, None),
    ("(i) two hops", "inert masks", "citeseer"): (0.467, 0.440, None),
}

# Mechanism comparison: (population, data), then row: valid rate on the clean graph, spurious flips, pollution.
Row = tuple[float, float, float]
COMPARED: dict[tuple[str, str], dict[str, Row]] = {
    ("general", "cora"): {
        "CF-GNNExplainer": (1.000, 0.0, 0.0),
        "PNS": (0.958, 0.0, 0.0),
        "RCExplainer": (0.854, 0.0, 0.0),
        "COMBINEX": (0.646, 0.0, 0.0),
        "NaiveDP, as printed": (0.625, 0.333, 0.812),
        "LapDP": (0.729, 0.250, 0.812),
        "RR-LDP": (0.979, 0.021, 0.062),
        "DP-SGD backbone": (0.938, 0.750, 0.417),
        "PrivCF-out (heuristic)": (1.000, 0.0, 0.0),
        "PrivCF-SGD": (0.125, 0.0, 0.0),
        "ours, exponential, edges": (0.139, 0.0, 0.0),
    },
    ("borderline", "cora"): {
        "CF-GNNExplainer": (1.000, 0.0, 0.0),
        "PNS": (1.000, 0.0, 0.0),
        "RCExplainer": (1.000, 0.0, 0.0),
        "COMBINEX": (0.800, 0.0, 0.0),
        "NaiveDP, as printed": (0.667, 0.333, 0.733),
        "LapDP": (0.700, 0.300, 0.733),
        "RR-LDP": (0.633, 0.367, 0.600),
        "DP-SGD backbone": (0.967, 0.433, 0.767),
        "PrivCF-out (heuristic)": (1.000, 0.0, 0.0),
        "PrivCF-SGD": (0.500, 0.0, 0.0),
        "ours, exponential, edges": (0.484, 0.0, 0.0),
        "ours, exponential, edges, 0.7 disclosed": (0.614, 0.0, 0.0),
    },
    ("general", "citeseer"): {
        "CF-GNNExplainer": (0.958, 0.0, 0.0),
        "PNS": (0.958, 0.0, 0.0),
        "RCExplainer": (0.854, 0.0, 0.0),
        "COMBINEX": (0.292, 0.0, 0.0),
        "NaiveDP, as printed": (0.688, 0.312, 0.917),
        "LapDP": (0.833, 0.167, 0.917),
        "RR-LDP": (0.875, 0.104, 0.188),
        "DP-SGD backbone": (1.000, 0.771, 0.458),
        "PrivCF-out (heuristic)": (0.958, 0.0, 0.0),
        "PrivCF-SGD": (0.146, 0.0, 0.0),
        "ours, exponential, edges": (0.139, 0.0, 0.0),
    },
    ("borderline", "citeseer"): {
        "CF-GNNExplainer": (1.000, 0.0, 0.0),
        "PNS": (1.000, 0.0, 0.0),
        "RCExplainer": (1.000, 0.0, 0.0),
        "COMBINEX": (0.433, 0.0, 0.0),
        "NaiveDP, as printed": (0.733, 0.267, 0.700),
        "LapDP": (0.767, 0.233, 0.700),
        "RR-LDP": (0.733, 0.267, 0.500),
        "DP-SGD backbone": (1.000, 0.400, 0.633),
        "PrivCF-out (heuristic)": (1.000, 0.0, 0.0),
        "PrivCF-SGD": (0.533, 0.0, 0.0),
        "ours, exponential, edges": (0.348, 0.0, 0.0),
        "ours, exponential, edges, 0.7 disclosed": (0.534, 0.0, 0.0),
    },
}
