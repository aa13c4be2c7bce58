"""The three roles without an LLM, put together."""

from __future__ import annotations

from merton_studies.curation.computed.matchers import zero_shot_voters
from merton_studies.curation.computed.proposers import ClusterProposer
from merton_studies.curation.computed.reviewer import RuleReviewer
from merton_studies.curation.computed.texts import Remembered
from merton_studies.curation.induction import Embed
from merton_studies.curation.roles import Roles


def computed_roles(embed: Embed, seed: int = 0) -> Roles:
    """Proposer, Reviewer and the five voters without examples.

    Args:
        embed: texts to (n, d) rows of norm 1; each text is embedded once for all of them.
        seed: of the clusters.
    """
    remembered = embed if isinstance(embed, Remembered) else Remembered(embed)
    proposer = ClusterProposer(remembered, seed)
    voters = zero_shot_voters(remembered)
    about = {"proposer": proposer.name, "reviewer": RuleReviewer.name, "voters": [voter.name for voter in voters]}
    return Roles(proposer, RuleReviewer(remembered), voters, about=about)
