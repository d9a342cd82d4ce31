"""The policies of a document as another component places by them: it completes them from its own settings.

The extender and our own loops read one document. What a policy leaves out, such as the domain, differs between them.
"""

from __future__ import annotations

import logging

from base.errors import InputError
from kube.objects.objects import PodInfo
from placement.policies.compiling import PolicyDefaults, compile_document, settings_policy
from placement.policies.document import PolicyDocument
from placement.policies.policy import ChosenPolicy
from placement.policies.policy_set import PolicySet
from placement.policies.provider import PolicyProvider

logger = logging.getLogger(__name__)


class UnderDefaults:
    """Implements Policies. It posts no event about unknown names: the provider does so, for pods that are placed."""

    def __init__(self, provider: PolicyProvider, defaults: PolicyDefaults) -> None:
        """Raises InputError if the defaults name what does not exist."""
        self._provider, self._defaults = provider, defaults
        self._settings = PolicySet(settings_policy(defaults))
        self._compiled: tuple[PolicyDocument | None, PolicySet] = (None, self._settings)

    def choose(self, pod: PodInfo) -> ChosenPolicy:
        document = self._provider.document
        known, policies = self._compiled
        if known is not document:
            policies = self._settings if document is None else self._compile(document)
            self._compiled = (document, policies)
        return policies.choose(pod, self._provider.labels_of)

    def count(self, policy: str) -> None:
        """No pod is placed by these."""

    def _compile(self, document: PolicyDocument) -> PolicySet:
        try:
            return compile_document(document, self._defaults)
        except InputError as error:
            logger.warning(
                "a policy document does not suit the settings of another component, which are used alone",
                extra={"reason": str(error)},
            )
            return self._settings
