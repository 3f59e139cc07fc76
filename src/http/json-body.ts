import { limits } from "../contract/limits.ts";
import { Refused } from "../features/context.ts";

const decoder = new TextDecoder("utf-8", { fatal: true });
const mostDepth = limits.request_body_depth;

/** Parses a request's body, if there is one. Refuses what is not declared as JSON, is not JSON, or nests deeper than 32. */
export function readJsonBody(contentType: string | undefined, bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (!/^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test((contentType ?? "").trim()))
    throw new Refused("unsupported_media_type");
  try {
    const text = decoder.decode(bytes);
    if (depthOf(text) > mostDepth)
      throw new Refused("invalid_request", { error: `The body nests deeper than ${mostDepth}.` });
    const value = JSON.parse(text) as unknown;
    if (hasHalfCharacter(text, value))
      throw new Refused("invalid_request", { error: "The body contains a lone Unicode surrogate." });
    return value;
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Refused("invalid_request", { error: "The body is not valid JSON." });
  }
}

// Returns whether a string contains a lone surrogate, which PostgreSQL rejects. JSON.stringify escapes exactly those.
function hasHalfCharacter(text: string, value: unknown): boolean {
  const escape = /(?<!\\)(?:\\\\)*\\ud[89a-f]/i;
  return escape.test(text) && escape.test(JSON.stringify(value));
}

/**
 * Returns how deep brackets nest, ignoring those in strings. Runs before parsing, so that a nesting bomb costs one pass; character by
 * character, because a pattern for strings takes quadratic time on an unterminated one.
 */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (inString && character === "\\") at += 1;
    else if (character === '"') inString = !inString;
    else if (!inString && (character === "[" || character === "{")) deepest = Math.max(deepest, (depth += 1));
    else if (!inString && (character === "]" || character === "}")) depth -= 1;
  }
  return deepest;
}
