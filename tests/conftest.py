"""What tests of several modules share."""

import secrets

import pytest


@pytest.fixture(scope="module")
def token():
    """A token for these tests, so that none is left in somebody's home."""
    from ray._private.authentication_test_utils import reset_auth_token_state

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        patch.setenv("RAY_AUTH_MODE", "token")
        reset_auth_token_state()  # Ray may have been imported before
        yield
    reset_auth_token_state()
