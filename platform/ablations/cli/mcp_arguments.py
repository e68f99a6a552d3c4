"""The arguments of a tool of the Model Context Protocol: forgiving in form, and refused where they are unknown."""

from collections.abc import Callable
from typing import Any

from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, ToolAnnotations
from pydantic import ValidationError, create_model

from ablations.nearest_name import did_you_mean


def tool_of(function: Callable[..., CallToolResult], annotations: ToolAnnotations) -> Tool:
    """The function as a tool that refuses arguments that it does not have, where the library leaves them out."""
    tool = CommandTool.from_function(function, annotations=annotations, structured_output=False)
    known = tool.fn_metadata.arg_model
    tool.fn_metadata.arg_model = create_model(known.__name__, __base__=known, __cls_kwargs__={"extra": "forbid"})
    tool.parameters = tool.fn_metadata.arg_model.model_json_schema(by_alias=True)
    return tool


class CommandTool(Tool):
    """A tool whose arguments have the names of the command's; singular and plural mean the same, and so do one value
    and a list of it."""

    async def run(self, arguments: dict[str, Any], *given: Any, **options: Any) -> Any:
        """Run the tool; ToolError names the arguments that there are, or what is wrong with a value."""
        named = {self._meant(name): value for name, value in arguments.items()}
        if len(named) < len(arguments):
            raise ToolError(f"{self.name}: {', '.join(arguments)}: two of these are one argument; give it once")
        whole = {name: self._shaped(name, value) for name, value in named.items()}
        try:
            self.fn_metadata.validate_arguments(whole)
        except ValidationError as error:
            said = (f"{'.'.join(map(str, one['loc']))}: found {one['input']!r}; {one['msg']}" for one in error.errors())
            raise ToolError("; ".join(said)) from error
        return await super().run(whole, *given, **options)

    def _shaped(self, name: str, value: Any) -> Any:
        """The value as a list if the argument takes one; else the only member of a list."""
        schema = self.parameters["properties"][name]
        types = {one.get("type") for one in (schema, *schema.get("anyOf", ()))}
        if "array" in types:
            return value if value is None or isinstance(value, list) else [value]
        return value[0] if isinstance(value, list) and len(value) == 1 else value

    def _meant(self, name: str) -> str:
        """The argument of this name, or of its singular or plural."""
        known = list(self.parameters["properties"])
        for one in (name, f"{name}s", name.removesuffix("s")):
            if one in known:
                return one
        raise ToolError(f"{self.name} has no argument '{name}'; {did_you_mean(name, known, 'arguments')}")
