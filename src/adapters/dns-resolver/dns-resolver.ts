import { getServers } from "node:dns";
import { Resolver } from "node:dns/promises";
import type { Dns, DnsAnswer } from "../../ports/dns.ts";

export interface DnsResolverOptions {
  /** `192.0.2.1`, `192.0.2.1:5353`, `[2001:db8::1]:53`; none: those of the machine. */
  readonly servers: readonly string[];
  /** For one question, all tries together. */
  readonly timeoutMs: number;
}

/** Asks recursive resolvers directly, so that neither the machine's hosts file nor a cache of ours colours the answer. */
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

// RFC 8659 §3: the nearest name with any CAA record decides, also with one that names no issuer.
async function climb(ask: (question: Question) => Promise<DnsAnswer>, hostname: string): Promise<DnsAnswer> {
  const answer = await ask(async (resolver) =>
    (await resolver.resolveCaa(absolute(hostname))).map((record) => record.issue ?? ""),
  );
  const parent = hostname.slice(hostname.indexOf(".") + 1);
  return answer.outcome === "none" && parent.includes(".") ? climb(ask, parent) : answer;
}

type Question = (resolver: Resolver) => Promise<string[]>;

// A trailing dot keeps the machine's search domains out.
function absolute(hostname: string): string {
  return `${hostname}.`;
}

// A resolver of its own for each question: c-ares keeps answers per resolver, and one alone can be given up.
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

/** Half an answer is none: with the IPv4 addresses alone a name that leads elsewhere too could pass for ours. */
function together(answers: readonly DnsAnswer[]): DnsAnswer {
  if (answers.some(({ outcome }) => outcome === "unavailable")) return { outcome: "unavailable" };
  const values = answers.flatMap((answer) => (answer.outcome === "found" ? answer.values : []));
  return values.length > 0 ? { outcome: "found", values } : { outcome: "none" };
}
