import { isIP } from "node:net";
import { domainToASCII, domainToUnicode } from "node:url";
import { parse } from "tldts";

/** A hostname as it is kept, or what is wrong with it in a sentence. */
export type ParsedHostname =
  | {
      readonly hostname: string;
      /** What was registered of it: `example.co.uk` of `www.example.co.uk`. */
      readonly zone: string;
    }
  | { readonly refused: string };

/** The names that belong to the platform. */
export interface OwnNames {
  /** It and everything below is the platform's. */
  readonly appsDomain: string;
  readonly controlHost: string;
}

/**
 * Lower case, A-labels, no trailing dot. Refuses what no project can have: IP addresses in any spelling that a client would
 * dial, wildcards, single labels, public suffixes, special names and the platform's own.
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
  return zone === null ? { refused: "is a public suffix, below which others register names" } : { hostname, zone };
}

/** What was registered of a hostname; null when it is a public suffix itself. Suffixes of companies such as `github.io` count. */
export function zoneOf(hostname: string): string | null {
  return parse(hostname, { allowPrivateDomains: true, validateHostname: false }).domain;
}

// 253 octets in DNS; Unicode is shorter than its A-label. The bound comes first, so that nothing below works on a long text.
const mostCharacters = 254;

function faultOfSpelling(text: string): string | undefined {
  if (text.length > mostCharacters) return "is longer than a hostname can be";
  if (text.includes("*")) return "must be one name: wildcards cannot be attached";
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return "must be the name alone, without https:// and path";
  if (/[[\]:]/.test(text))
    return isIP(text.replaceAll(/[[\]]/g, "")) > 0 ? noAddress : "must be the name alone, without a port";
  // Of ASCII only what a hostname may have: the conversion below would take the rest for parts of a URL.
  if (/[^a-z0-9.\-\u0080-\u{10ffff}]/iu.test(text)) return "has characters that no hostname has";
  return undefined;
}

const noAddress = "is an IP address: only names can be attached";

function toAscii(text: string): string | undefined {
  const isPlain = /^[a-z0-9.-]*$/i.test(text);
  // Full-width letters and dots become ASCII here, so everything else is asked of the result.
  const ascii = (isPlain ? text : domainToASCII(text)).toLowerCase();
  if (!ascii.split(".").some((label) => label.startsWith("xn--"))) return ascii === "" ? undefined : ascii;
  const bare = ascii.replace(/\.$/, "");
  return domainToASCII(domainToUnicode(bare)) === bare && domainToUnicode(bare) !== bare ? ascii : undefined;
}

function faultOfHostname(hostname: string): string | undefined {
  const labels = hostname.split(".");
  const last = labels.at(-1) ?? "";
  // WHATWG URL, "ends in a number": whatever ends so is dialled as an address (127.1, 0x7f000001, 017700000001, 2130706433).
  if (/^(?:\d+|0x[0-9a-f]*)$/.test(last)) return noAddress;
  if (hostname.length > 253 || !labels.every((label) => /^(?!-)[a-z0-9-]{1,63}(?<!-)$/.test(label)))
    return "is not a valid hostname";
  if (labels.length < 2) return "must have at least two labels, such as app.example.com";
  if (specialNames.has(last)) return "ends in a name that public DNS does not delegate";
  return undefined;
}

// RFC 6761, 6762, 7686, 8375 and 6303, and the names that private networks and clouds use (ICANN reserved `internal`): each means the
// client's own machine, its local network, nothing at all, or addresses. `test` and `example` stay, for trials.
const specialNames: ReadonlySet<string> = new Set(
  ["localhost", "local", "internal", "intranet", "private", "corp", "home", "lan", "localdomain", "invalid"].concat([
    "onion",
    "arpa",
    "alt",
  ]),
);

function faultOfOwner(hostname: string, { appsDomain, controlHost }: OwnNames): string | undefined {
  const isOwn = hostname === controlHost || hostname === appsDomain || hostname.endsWith(`.${appsDomain}`);
  return isOwn ? "is one of the platform's own names" : undefined;
}
