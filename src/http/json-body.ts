import { limits } from "../contract/limits.ts";
import { Refused } from "../features/context.ts";

const decoder = new TextDecoder("utf-8", { fatal: true });
const mostDepth = limits.request_body_depth;

/**
 * Reads a request's body: undefined when there is none. Refuses with `unsupported_media_type` what does not call itself JSON
 * and with `invalid_request` what is not JSON or nests deeper than 32.
 */
export function readJsonBody(contentType: string | undefined, bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (!isJson(contentType ?? "")) throw new Refused("unsupported_media_type");
  try {
    const text = decoder.decode(bytes);
    if (depthOf(text) > mostDepth)
      throw new Refused("invalid_request", { error: `The body nests deeper than ${mostDepth}.` });
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Refused("invalid_request", { error: "The body is not valid JSON." });
  }
}

function isJson(contentType: string): boolean {
  return /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(contentType.trim());
}

/** How deep brackets nest, found before parsing, so that a bomb costs one pass. Brackets in strings don't count. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[{]|[\]}]/gs)) {
    if (token === "[" || token === "{") depth += 1;
    else if (token === "]" || token === "}") depth -= 1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}
