import type { Command } from "commander";
import type { Answer, Client } from "../../contract/client.ts";
import { until } from "../../kit/until.ts";
import { addCommand, commandGroup, actCommand, listCommand } from "../command-tree.ts";
import { openProject, type CliContext } from "../context.ts";
import { CliError, usageError } from "../failures.ts";
import { patiently } from "../follow.ts";
import { wholeNumber } from "../input.ts";
import { paintStatus, columns, oneLine, relativeTime, type Paint } from "../render/text.ts";
import { withProgress } from "../render/progress.ts";

export const addDomains = commandGroup({
  name: "domains",
  summary: "List, add, check and remove hostnames",
  commands: () => [addList, addAdd, addCheck, addRemove],
});

type Domain = Answer<"domains.attach">;

const addList = listCommand({
  row: "domains.list",
  usage: "list",
  summary: "List the project's hostnames",
  isDefault: true,
  examples: ["berth domains", "berth domains list -p demo --json"],
  items: (answer) => answer.domains,
  columns: {
    HOSTNAME: (domain) => domain.hostname,
    "REDIRECTS TO": (domain) => domain.redirect_to ?? "-",
    DNS: (domain, paint) => paintStatus(paint, domain.dns_status),
    CERTIFICATE: (domain, paint) => paintStatus(paint, domain.ssl_status),
    SERVED: (domain) => (domain.serving ? "yes" : "no"),
    CHECKED: (domain) => relativeTime(domain.checked_at),
    DETAIL: (domain) => oneLine(isWaitingForCertificate(domain) ? domain.ssl_detail : domain.dns_detail, 80),
  },
  empty: "There are no hostnames yet: `berth domains add <hostname>` attaches one.",
});

interface WaitOptions {
  readonly wait?: boolean;
  readonly timeout: string;
}

function addWaiting(command: Command): Command {
  return command
    .option("--wait", "wait until the name is served")
    .option("--timeout <minutes>", "how long to wait", "30");
}

function addAdd(domains: Command, ctx: CliContext): void {
  const examples = [
    "berth domains add www.example.com",
    "berth domains add example.com --wait --timeout 60",
    "berth domains add www.example.com --redirect-to example.com",
  ];
  const text = { usage: "add <hostname>", summary: "Attach a hostname and show the DNS records to create", examples };
  const command = addWaiting(addCommand(domains, text))
    .option(
      "--redirect-to <hostname>",
      "redirect requests to another hostname of the project (308); also for a name that is attached",
    )
    .option("--no-redirect", "serve the application under a name that redirected so far");
  command.action(async (hostname: string, options: WaitOptions & RedirectOptions) => {
    const limitMs = limitOf(options);
    const { slug, client } = await openProject(ctx);
    const body = { hostname, ...redirectOf(options) };
    const domain = await withProgress(ctx, `Attaching ${oneLine(hostname, 80)}`, () =>
      client.call("domains.attach", { params: { slug }, body, signal: ctx.signal }),
    );
    if (options.wait !== true || isReady(domain)) return ctx.output.result(domain, (paint) => describe(paint, domain));
    ctx.output.note((paint) => describe(paint, domain));
    const clock = createStepClock();
    const served = await awaitServing(ctx, client, { slug, domain, limitMs, clock });
    const how = served.ssl_status === "active" ? "served over HTTPS" : "served";
    return ctx.output.result(served, () => `${served.hostname} is ${how}.\n${clock.text()}`);
  });
}

interface RedirectOptions {
  readonly redirectTo?: string;
  readonly redirect: boolean;
}

function redirectOf({ redirectTo, redirect }: RedirectOptions): { redirect_to?: string | null } {
  if (redirectTo !== undefined && !redirect) throw usageError("Leave out either --redirect-to or --no-redirect.");
  if (!redirect) return { redirect_to: null };
  return redirectTo === undefined ? {} : { redirect_to: redirectTo };
}

function addCheck(domains: Command, ctx: CliContext): void {
  const examples = ["berth domains check", "berth domains check www.example.com --wait"];
  const text = {
    usage: "check [hostname]",
    summary: "Check the DNS records and show which are missing; exit code 0 when all are right",
    examples,
  };
  addWaiting(addCommand(domains, text)).action(async (given: string | undefined, options: WaitOptions) => {
    const limitMs = limitOf(options);
    const { slug, client } = await openProject(ctx);
    const checked: Domain[] = [];
    for (const domain of await chosen(client, slug, given)) {
      const waits = options.wait === true && !isReady(domain);
      checked.push(waits ? await awaitServing(ctx, client, { slug, domain, limitMs }) : domain);
    }
    ctx.output.result({ domains: checked }, (paint) => checked.map((domain) => describe(paint, domain)).join("\n\n"));
    const wrong = checked.filter((domain) => domain.dns_status !== "ok" && !(options.wait === true && domain.serving));
    if (wrong.length > 0) throw notHere(wrong);
  });
}

async function chosen(client: Client, slug: string, given: string | undefined): Promise<readonly Domain[]> {
  const { domains } = await client.call("domains.list", { params: { slug } });
  if (given === undefined) return domains;
  const wanted = given.toLowerCase().replace(/\.$/, "");
  const found = domains.filter((domain) => domain.hostname === wanted);
  if (found.length > 0) return found;
  throw new CliError("notFound", "not_found", {
    message: `${slug} has no hostname "${oneLine(given, 80)}".`,
    hint: "`berth domains` lists them; names with other letters appear in their xn-- form.",
  });
}

function notHere(wrong: readonly Domain[]): CliError {
  return new CliError("refused", "dns_not_ready", {
    message: `The DNS records of these hostnames do not point here yet: ${wrong.map((domain) => domain.hostname).join(", ")}.`,
    hint: "DNS changes take a while to spread. `berth domains check --wait` waits for them.",
  });
}

/** Returns whether a hostname is served, with its certificate if the platform orders one. */
function isReady({ serving, ssl_status, ssl_next_attempt_at }: Domain): boolean {
  if (!serving || ssl_status === "issuing") return false;
  return ssl_status === "active" || ssl_next_attempt_at === null;
}

/** Returns whether a hostname's records are right and only its certificate is missing. */
function isWaitingForCertificate({ dns_status, ssl_status, ssl_next_attempt_at }: Domain): boolean {
  if (dns_status !== "ok" || ssl_status === "active") return false;
  return ssl_status === "issuing" || ssl_next_attempt_at !== null;
}

function noCertificate({ hostname, ssl_detail, ssl_next_attempt_at }: Domain): CliError {
  const next = ssl_next_attempt_at === null ? "" : ` It is tried again at ${ssl_next_attempt_at}.`;
  return new CliError("refused", "no_certificate", {
    message: `${hostname} is served over HTTP, but has no certificate yet: ${oneLine(ssl_detail)}`,
    hint: `\`berth domains check --wait\` waits for it.${next}`,
  });
}

// The platform itself looks a new name up every 15 seconds; polling more often than this shows nothing new.
const pauseMs = { firstMs: 1000, atMostMs: 5000 };

async function awaitServing(
  ctx: CliContext,
  client: Client,
  { slug, domain, limitMs, clock }: { slug: string; domain: Domain; limitMs: number; clock?: StepClock },
): Promise<Domain> {
  const { hostname } = domain;
  const served = await withProgress(ctx, `Waiting for ${hostname}`, (say) =>
    until(
      async () => {
        const ask = () => client.call("domains.list", { params: { slug }, signal: ctx.signal });
        const now = (await patiently(ctx, ask)).domains.find((row) => row.hostname === hostname);
        if (now === undefined)
          throw new CliError("notFound", "not_found", { message: `${hostname} was detached meanwhile.` });
        clock?.note(now);
        say(`Waiting for ${hostname}: ${oneLine(now.serving ? now.ssl_detail : now.dns_detail, 100)}`);
        if (now.serving && now.ssl_status === "failed") throw noCertificate(now);
        return isReady(now) ? now : undefined;
      },
      { timeoutMs: limitMs, ...pauseMs, signal: ctx.signal },
    ),
  );
  ctx.signal.throwIfAborted();
  if (served !== undefined) return served;
  throw new CliError("unavailable", "timeout", {
    message: `${hostname} does not point here yet, or has no certificate yet.`,
    hint: "The platform checks again by itself; `berth domains check` shows what is missing.",
  });
}

function limitOf({ timeout }: WaitOptions): number {
  return wholeNumber(timeout, "--timeout", { least: 1, most: 10_080 }) * 60_000;
}

/** Describes a hostname, its status and, while they are missing, the records to create at its DNS provider. */
function describe(paint: Paint, domain: Domain): string {
  const { hostname, redirect_to, dns_status, dns_detail, serving, instructions } = domain;
  const name = redirect_to === null ? paint.bold(hostname) : `${paint.bold(hostname)} → ${redirect_to}`;
  const state = `${name}  ${paintStatus(paint, dns_status)}: ${oneLine(dns_detail)}`;
  if (dns_status === "ok") return `${state}${serving ? "" : " It is not served."}`;
  const record = ({ type, name, value }: { type: string; name: string; value: string }) => [
    `  ${type}`,
    `${name}.`,
    value,
  ];
  const lines = [state, "", oneLine(instructions.note)];
  if (instructions.records.length > 0) lines.push("", columns(instructions.records.map(record)));
  if (instructions.alias !== null) lines.push("or, instead of the addresses:", columns([record(instructions.alias)]));
  return lines.join("\n");
}

const addRemove = actCommand({
  row: "domains.detach",
  usage: "remove <hostname>",
  summary: "Detach a hostname; it stops being served at once",
  examples: ["berth domains remove www.example.com", "berth domains remove www.example.com --yes"],
  warning: ({ words: { hostname = "", slug } }) =>
    `This detaches ${oneLine(hostname, 253)} from ${slug}; it stops being served at once.`,
  text: (_, _paint, { words: { hostname = "" } }) => `Detached ${oneLine(hostname, 253)}. Remove its DNS records too.`,
});

/** Records when each step of making a hostname available was first seen. */
type StepClock = ReturnType<typeof createStepClock>;

/** `nowMs` is a monotonic clock. */
function createStepClock(nowMs: () => number = () => performance.now()) {
  const startedAtMs = nowMs();
  const seen = new Map<string, number>();
  return {
    note(domain: Domain) {
      for (const step of stepsOf(domain)) if (!seen.has(step)) seen.set(step, nowMs() - startedAtMs);
    },
    /** Returns a line for each step, with the seconds since the start. */
    text: () => columns(Array.from(seen, ([step, ms]) => [`  ${(ms / 1000).toFixed(1)} s`, step])),
  };
}

function stepsOf({ serving, ssl_status, ssl_detail }: Domain): readonly string[] {
  if (!serving) return [];
  const served = "The DNS records point here, and the name is served over HTTP.";
  if (ssl_status === "issuing") return [served, ssl_detail];
  return ssl_status === "active" ? [served, "The name is served over HTTPS."] : [served];
}
