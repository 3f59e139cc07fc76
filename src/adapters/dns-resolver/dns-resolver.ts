import { getServers } from "node:dns";
import { Resolver } from "node:dns/promises";
import type { Dns, DnsAnswer } from "../../ports/dns.ts";

export interface DnsResolverOptions {
  /** Such as `192.0.2.1`, `192.0.2.1:5353` or `[2001:db8::1]:53`; empty for the machine's resolvers. */
  readonly servers: readonly string[];
  /** For one query, all retries included. */
  readonly timeoutMs: number;
}

/** Queries recursive resolvers directly, so that neither the machine's hosts file nor a cache of ours affects the answer. */
export function createDnsResolver(options: DnsResolverOptions): Dns {
  const servers = options.servers.length > 0 ? options.servers : getServers();
  const ask = (question: Question) => askOnce(servers, options.timeoutMs, question);
  return {
    async addresses(hostname) {
      const answers = await Promise.all([
        ask((resolver) => resolver.resolve4(absolute(hostname))),
        ask((resolver) => resolver.resolve6(absolute(hostname))),
      ]);
      return together(answers);
    },
    texts: (hostname) =>
      ask(async (resolver) => (await resolver.resolveTxt(absolute(hostname))).map((parts) => parts.join(""))),
    alias: (hostname) => ask((resolver) => resolver.resolveCname(absolute(hostname))),
    authorities: (hostname) => climb(ask, hostname.replace(/^\*\./, "")),
  };
}

// RFC 8659 §3: the nearest name with any CAA record decides, even if none of its records names an issuer.
async function climb(ask: (question: Question) => Promise<DnsAnswer>, hostname: string): Promise<DnsAnswer> {
  const answer = await ask(async (resolver) =>
    (await resolver.resolveCaa(absolute(hostname))).map((record) => record.issue ?? ""),
  );
  const parent = hostname.slice(hostname.indexOf(".") + 1);
  return answer.outcome === "none" && parent.includes(".") ? climb(ask, parent) : answer;
}

type Question = (resolver: Resolver) => Promise<string[]>;

// A trailing dot keeps the machine's search domains from being appended.
function absolute(hostname: string): string {
  return `${hostname}.`;
}

// Uses a new resolver for each query: c-ares caches answers per resolver, and a resolver can be cancelled without affecting other queries.
async function askOnce(servers: readonly string[], timeoutMs: number, question: Question): Promise<DnsAnswer> {
  const resolver = new Resolver({ timeout: Math.ceil(timeoutMs / 2), tries: 2 });
  resolver.setServers(servers);
  const timer = setTimeout(() => resolver.cancel(), timeoutMs);
  try {
    const values = await question(resolver);
    return values.length > 0 ? { outcome: "found", values } : { outcome: "none" };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOTFOUND" || code === "ENODATA") return { outcome: "none" };
    if (code !== undefined && unanswered.has(code)) return { outcome: "unavailable" };
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

const unanswered = new Set([
  "ETIMEOUT",
  "ECANCELLED",
  "ESERVFAIL",
  "EREFUSED",
  "ECONNREFUSED",
  "EBADRESP",
  "EFORMERR",
  "ENOTIMP",
  "EBADNAME",
  "ENOMEM",
  "EOF",
]);

/** Fails if either lookup failed: judged by its IPv4 addresses alone, a name that also points elsewhere could pass for ours. */
function together(answers: readonly DnsAnswer[]): DnsAnswer {
  if (answers.some(({ outcome }) => outcome === "unavailable")) return { outcome: "unavailable" };
  const values = answers.flatMap((answer) => (answer.outcome === "found" ? answer.values : []));
  return values.length > 0 ? { outcome: "found", values } : { outcome: "none" };
}
