"""Names of the manifest are those that the audit implements."""

from herald_jax import manifest
from herald_jax.audit.generators import GENERATORS
from herald_jax.audit.operators import OPERATORS
from herald_jax.manifest.contracts import build_contracts


def test_operators() -> None:
    assert set(manifest.OPERATORS) == set(OPERATORS)
    assert manifest.Operators().primary == manifest.PRIMARY_OPERATORS
    assert not any(OPERATORS[name].oracle for name in manifest.PRIMARY_OPERATORS)


def test_generators() -> None:
    assert set(manifest.GENERATORS) == set(GENERATORS)
    visible = {name for name, generator in GENERATORS.items() if not generator.oracle}
    assert set(manifest.VISIBLE_GENERATORS) == visible


def test_reserved_contract_names_are_those_that_every_audit_builds() -> None:
    built = build_contracts(manifest.Manifest()).names
    assert {name for name in built if not name.startswith("R[")} == set(manifest.BUILT_IN_CONTRACTS)
