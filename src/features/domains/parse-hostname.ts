import { isIP } from "node:net";
import { domainToASCII, domainToUnicode } from "node:url";
import { parse } from "tldts";

/** A hostname in its stored form, or a sentence about what is wrong with it. */
export type ParsedHostname =
  | {
      readonly hostname: string;
      /** The registered domain: `example.co.uk` for `www.example.co.uk`. */
      readonly zone: string;
    }
  | { readonly refused: string };

export interface OwnNames {
  /** This name and everything below it belong to the platform. */
  readonly appsDomain: string;
  readonly controlHost: string;
}

/**
 * Converts a hostname to lower case and A-labels without a trailing dot. Refuses names that no project can have: IP addresses in any
 * spelling that a client would dial, wildcards, single labels, public suffixes, special names and the platform's own.
 */
export function parseHostname(text: string, own: OwnNames): ParsedHostname {
  const spelling = faultOfSpelling(text);
  if (spelling !== undefined) return { refused: spelling };
  const ascii = toAscii(text);
  if (ascii === undefined) return { refused: "is not a valid hostname" };
  const hostname = ascii.endsWith(".") ? ascii.slice(0, -1) : ascii;
  const fault = faultOfHostname(hostname) ?? faultOfOwner(hostname, own);
  if (fault !== undefined) return { refused: fault };
  const zone = zoneOf(hostname);
  return zone === null ? { refused: "is a public suffix, under which anyone can register names" } : { hostname, zone };
}

/** Returns the registered domain of a hostname; null when it is a public suffix itself. Private suffixes such as `github.io` count. */
export function zoneOf(hostname: string): string | null {
  return parse(hostname, { allowPrivateDomains: true, validateHostname: false }).domain;
}

// DNS allows 253 octets, plus a trailing dot here; Unicode is never longer than its A-label. Checked first, so that the rest never works on
// a long text.
const mostCharacters = 254;

function faultOfSpelling(text: string): string | undefined {
  if (text.length > mostCharacters) return "is longer than a hostname can be";
  if (text.includes("*")) return "must be a single name: wildcards cannot be attached";
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return "must be only the name, without https:// and without a path";
  if (/[[\]:]/.test(text))
    return isIP(text.replaceAll(/[[\]]/g, "")) > 0 ? noAddress : "must be only the name, without a port";
  // Allow only ASCII that a hostname may contain: the conversion below would parse other characters as parts of a URL.
  if (/[^a-z0-9.\-\u0080-\u{10ffff}]/iu.test(text)) return "contains characters that are not allowed in hostnames";
  return undefined;
}

const noAddress = "is an IP address: only names can be attached";

function toAscii(text: string): string | undefined {
  const isPlain = /^[a-z0-9.-]*$/i.test(text);
  // Full-width letters and dots become ASCII here, so the remaining checks use the result.
  const ascii = (isPlain ? text : domainToASCII(text)).toLowerCase();
  if (!ascii.split(".").some((label) => label.startsWith("xn--"))) return ascii === "" ? undefined : ascii;
  const bare = ascii.replace(/\.$/, "");
  return domainToASCII(domainToUnicode(bare)) === bare && domainToUnicode(bare) !== bare ? ascii : undefined;
}

function faultOfHostname(hostname: string): string | undefined {
  const labels = hostname.split(".");
  const last = labels.at(-1) ?? "";
  // WHATWG URL, "ends in a number": clients dial such a name as an address (127.1, 0x7f000001, 017700000001, 2130706433).
  if (/^(?:\d+|0x[0-9a-f]*)$/.test(last)) return noAddress;
  if (hostname.length > 253 || !labels.every((label) => /^(?!-)[a-z0-9-]{1,63}(?<!-)$/.test(label)))
    return "is not a valid hostname";
  if (labels.length < 2) return "must have at least two labels, such as app.example.com";
  if (specialNames.has(last)) return "does not end in a top-level domain of the public DNS";
  return undefined;
}

// From RFC 6761, 6762, 7686, 8375 and 6303, plus names that private networks and clouds use (ICANN reserved `internal`). Each means the
// client's own machine, its local network, nothing at all, or addresses. `test` and `example` are allowed, for trials.
const specialNames: ReadonlySet<string> = new Set(
  ["localhost", "local", "internal", "intranet", "private", "corp", "home", "lan", "localdomain", "invalid"].concat([
    "onion",
    "arpa",
    "alt",
  ]),
);

function faultOfOwner(hostname: string, { appsDomain, controlHost }: OwnNames): string | undefined {
  const isOwn = hostname === controlHost || hostname === appsDomain || hostname.endsWith(`.${appsDomain}`);
  return isOwn ? "is reserved for the platform" : undefined;
}
