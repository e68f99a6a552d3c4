"""vLLM's environment, whoever imports it first."""

import os
import sys
from types import ModuleType

from scalerl.generator.vllm_import import VLLM_ENVIRONMENT, vllm_module


def test_the_environment_is_set_too_where_another_library_has_imported_vllm(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))
    monkeypatch.setitem(sys.modules, "vllm.part", part := ModuleType("vllm.part"))
    monkeypatch.setattr(os, "environ", found := {"VLLM_CPU_OMP_THREADS_BIND": "0-1"})
    assert vllm_module("part") is part
    assert found == VLLM_ENVIRONMENT | {"VLLM_CPU_OMP_THREADS_BIND": "0-1"}
