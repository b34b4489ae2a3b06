"""The JSON Schema of runs' configurations, for editors and for programs that call ours."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from dpsynth.runs.config import RunConfig
from dpsynth.synthesis.generators import DEFAULT, GENERATORS


class _Form(GenerateJsonSchema):
    """Leaves open what has no form, such as functions."""

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> dict[str, Any]:
        return {}


def run_form() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of runs' configurations, with each generator's own options.

    It checks keys and types. `dpsynth run` says whether the options fit each other and the table.

    Examples
    --------
    >>> form = run_form()
    >>> sorted(form["$defs"]["marginals"]["properties"])[:3]
    ['accept_unreviewed', 'delta', 'epsilon']
    """
    form = RunConfig.model_json_schema(schema_generator=_Form)
    defined = form["$defs"]
    for name, generator in GENERATORS.items():
        own = generator.options.model_json_schema(schema_generator=_Form)
        defined |= own.pop("$defs", {})
        own["properties"] = {"generator": {"const": name}, **own["properties"]}
        own["required"] = ["epsilon", *([] if name == DEFAULT else ["generator"])]
        own["additionalProperties"] = False
        defined[name] = own
    form["properties"]["model"] = {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in GENERATORS]}
    studies = form["properties"]["studies"]
    studies["items"] = {"anyOf": [{"type": "string"}, studies["items"]]}
    for described in (form, *defined.values()):
        described["description"] = described.get("description", "").split("\n\n")[0]
    return form
