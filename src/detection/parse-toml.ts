import { parse } from "smol-toml";
import { BuildRefused, type BuilderFailureCode } from "./failures.ts";

/** Parses a TOML file; refuses with the failure code of its kind. */
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
