"""Candidate rules: what may be released. One file per rule, one line in the table."""

from collections.abc import Mapping

from privcfs.public.candidates.candidates import CandidateRule
from privcfs.public.candidates.ladders import Ladders
from privcfs.public.candidates.nothing import Nothing
from privcfs.public.candidates.pairs import LinkPredictor, TwoHop
from privcfs.public.candidates.partners import Partners
from privcfs.public.candidates.product import Product
from privcfs.public.candidates.recourse import Recourse
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.public.candidates.top_influence import Schema

RULES: Mapping[str, CandidateRule] = {
    "one-hop": Product(),
    "two-hop": Product(pairs=TwoHop()),
    "edges-only": Product(most_features=0),
    "features-only": Product(most_pairs=0),
    "small-sets": SmallSets(),
    "two-hop-sets": SmallSets(deletions=TwoHop(), partners=Partners(beyond=12)),
    "sampled-sets": SmallSets(5, sampled=2000),
    "link-predictor": SmallSets(deletions=LinkPredictor()),
    "schema-sets": SmallSets(features=Schema()),
    "ladders": Ladders(),
    "recourse": Recourse(),
    "recourse-features": Recourse(pairs=False),
    "nothing": Nothing(),
}
