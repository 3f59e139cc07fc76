import { parse } from "smol-toml";
import { BuildRefused, type BuilderFailureCode } from "./failures.ts";

/** The content of a TOML file; refuses with the code of its kind. */
export function parseToml(
  text: string,
  file: string,
  code: BuilderFailureCode = "pyproject_invalid",
): Record<string, unknown> {
  try {
    return parse(text);
  } catch (error) {
    const reason = (error as Error).message.split("\n")[0];
    throw new BuildRefused(code, { summary: `${file} is not valid TOML: ${reason}` });
  }
}

export function asTable(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
