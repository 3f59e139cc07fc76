import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import type { Answer } from "../../contract/client.ts";
import { limits } from "../../contract/limits.ts";
import { bytesText } from "../../kit/bytes-text.ts";
import { addCommand, commandGroup, actCommand, listCommand, rowCommand } from "../command-tree.ts";
import { currentProject, type CliContext } from "../context.ts";
import { CliError } from "../failures.ts";
import { deploymentNumber, ifGiven, instant, wholeNumber } from "../input.ts";
import { paintStatus, facts, oneLine, relativeTime, type Paint } from "../render/text.ts";
import { withProgress } from "../render/progress.ts";

type Branch = Answer<"branches.get">;

/** The option of commands that read the database. */
export const branchOption = ["--branch <name>", "a branch of the database: `berth db branch`"] as const;

export const addBranches = commandGroup({
  name: "branch",
  summary: "Copies of the database to try things on, each in a server of its own",
  alias: "branches",
  commands: () => [
    listCommand({
      row: "branches.list",
      usage: "list",
      summary: "List the branches of the database",
      isDefault: true,
      examples: ["berth db branch", "berth db branch list -p demo --json"],
      items: (answer) => answer.branches,
      columns: {
        NAME: ({ name }) => name,
        STATUS: ({ status }, paint) => paintStatus(paint, status),
        SHOWS: ({ shows, created_at }) => shows ?? relativeTime(created_at),
        MASKED: ({ masked }) => (masked ? "yes" : "no"),
        SIZE: ({ size_bytes }) => (size_bytes === null ? "" : bytesText(size_bytes)),
        ENDS: ({ expires_at }) => (expires_at === null ? "" : relativeTime(expires_at)),
        NOTE: (branch) => oneLine(noteOf(branch), 80),
      },
      empty: "There are no branches: `berth db branch create <name>` makes one.",
    }),
    rowCommand({
      row: "branches.get",
      usage: "show <branch>",
      summary: "Show a branch of the database",
      examples: ["berth db branch show try"],
      text: describe,
    }),
    addCreate,
    actCommand({
      row: "branches.delete",
      usage: "delete <branch>",
      summary: "Delete a branch of the database",
      examples: ["berth db branch delete try", "berth db branch delete try --yes"],
      warning: ({ words: { branch = "" } }) =>
        `This deletes the branch ${branch} and everything that was written to it.`,
      text: (_, _paint, { words }) => `Deleted ${words["branch"]}.`,
    }),
  ],
});

function noteOf({ failure, read_only, used_by, copy_bytes, expected_seconds, status }: Branch): string {
  if (failure !== null) return failure.summary;
  if (status === "copying" && copy_bytes !== null)
    return `copying ${bytesText(copy_bytes)}, about ${expected_seconds ?? 0} s`;
  return [...(read_only ? ["over its size: read-only"] : []), ...(used_by === null ? [] : [`used by ${used_by}`])].join(
    "; ",
  );
}

function describe(branch: Branch, paint: Paint): string {
  const { status, shows, masked, method, size_bytes, size_limit_bytes, created_at, expires_at } = branch;
  const size = size_bytes === null ? null : `${bytesText(size_bytes)} of at most ${bytesText(size_limit_bytes ?? 0)}`;
  return facts(paint, [
    ["status", paintStatus(paint, status)],
    ["shows", shows ?? `the database ${relativeTime(created_at)}`],
    ["masked", masked ? "yes" : "no"],
    ["copied", method === "clone" ? "blocks are shared" : method === "copy" ? "all bytes" : null],
    ["size", size],
    ["ends", expires_at === null ? null : `${relativeTime(expires_at)}, at ${expires_at}`],
    ["note", noteOf(branch) || null],
  ]);
}

interface CreateOptions {
  readonly at?: string;
  readonly beforeDeployment?: string;
  readonly mask?: true;
  readonly minutes?: string;
}

function addCreate(branches: Command, ctx: CliContext): void {
  addCommand(branches, {
    usage: "create <branch>",
    summary: "Copy the database, as it is or as it was at any moment, into a server of its own",
    examples: [
      "berth db branch create try",
      "berth db branch create try --mask --minutes 60",
      "berth db branch create before --at 10m",
      "berth db branch create before --before-deployment 12",
    ],
  })
    .option("--at <time>", "the database as it was: 90s, 15m, 2h, 7d ago, or at 2026-01-31T09:00:00Z")
    .option("--before-deployment <number>", "the database as it was before a deployment")
    .option("--mask", "run the SQL that `mask` in berth.json names, before anybody can reach it")
    .option("--minutes <n>", "how long it lives; by default as the platform says, usually a day")
    .action(async (name: string, options: CreateOptions) => {
      const slug = await currentProject(ctx);
      const branch = await withProgress(ctx, `Making the branch ${name} of ${slug}`, (say) =>
        create(ctx, { slug, body: { name, ...bodyOf(options) } }, say),
      );
      ctx.output.result(branch, (paint) => describe(branch, paint));
      ctx.output.note(() => `\`berth db psql --branch ${name}\` opens it.`);
    });
}

function bodyOf({ at, beforeDeployment, mask, minutes }: CreateOptions) {
  return {
    at: instant(at, "--at"),
    before_deployment: ifGiven(beforeDeployment, deploymentNumber),
    mask,
    ttl_minutes: ifGiven(minutes, (text) => wholeNumber(text, "--minutes", { least: 1, most: limits.branch_minutes })),
  };
}

const pollMs = 1000;

async function create(
  ctx: CliContext,
  { slug, body }: { readonly slug: string; readonly body: { readonly name: string } & ReturnType<typeof bodyOf> },
  say: (label: string) => void,
): Promise<Branch> {
  const client = await ctx.client();
  const { signal } = ctx;
  let branch = await client.call("branches.create", { params: { slug }, body, signal });
  const { name } = body;
  while (branch.status === "copying") {
    say(`Making the branch ${name} of ${slug}: ${noteOf(branch)}`);
    await sleep(pollMs, undefined, { signal });
    branch = await client.call("branches.get", { params: { slug, branch: name }, signal });
  }
  if (branch.failure === null) return branch;
  throw new CliError("refused", branch.failure.code, { message: branch.failure.summary });
}
