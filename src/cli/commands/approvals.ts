import { Option, type Command } from "commander";
import type { Answer, Client } from "../../contract/client.ts";
import { approvalStates, statesOf } from "../../contract/states.ts";
import { addCommand, commandGroup, listCommand, rowCommand } from "../command-tree.ts";
import type { CliContext } from "../context.ts";
import { CliError } from "../failures.ts";
import { patiently } from "../follow.ts";
import { wholeNumber } from "../input.ts";
import { paintStatus, columns, oneLine, relativeTime, type Paint } from "../render/text.ts";
import { withProgress } from "../render/progress.ts";
import { linesText } from "../render/lines-text.ts";

/** Adds `berth approvals`: requests of tokens in approval mode. People decide in a browser, never here. */
export const addApprovals = commandGroup({
  name: "approvals",
  summary: "List, show, wait for and withdraw approval requests",
  commands: () => [
    addList,
    addShow,
    addWait,
    rowCommand({
      row: "approvals.withdraw",
      usage: "withdraw <id>",
      summary: "Withdraw an open request of your own token",
      examples: ["berth approvals withdraw apr_01jd…"],
      text: (_, _paint, { words }) => `Withdrew ${words["id"]}.`,
    }),
  ],
});

type Approval = Answer<"approvals.get">;

const addList = listCommand({
  row: "approvals.list",
  usage: "list",
  summary: "List the organization's requests, newest first",
  isDefault: true,
  examples: ["berth approvals", "berth approvals list --status pending --json"],
  input: ({ status }) => ({ query: { status } }),
  items: (answer) => answer.approvals,
  columns: {
    ID: (approval) => approval.id,
    STATUS: (approval, paint) => paintStatus(paint, approval.status),
    REQUEST: (approval) => oneLine(approval.summary, 60),
    PROJECT: (approval) => approval.project ?? "-",
    TOKEN: (approval) => oneLine(approval.requested_by.token_name, 30),
    ASKED: (approval) => relativeTime(approval.created_at),
    ENDS: (approval) => relativeTime(approval.expires_at),
  },
  empty: "There are no approval requests.",
  options: (command) =>
    command.addOption(new Option("--status <status>", "only these").choices(statesOf(approvalStates))),
});

const addShow = rowCommand({
  row: "approvals.get",
  usage: "show <id>",
  summary: "Show one request; of a deploy also the difference to what serves, and its rehearsal",
  examples: ["berth approvals show apr_01jd…"],
  text: (approval, paint) => [describe(approval, paint), ...reviewText(approval.review, paint)].join("\n"),
});

function addWait(approvals: Command, ctx: CliContext): void {
  addCommand(approvals, {
    usage: "wait <id>",
    summary: "Wait for the decision; exit code 0 when it is approved",
    examples: ["berth approvals wait apr_01jd… && berth projects delete demo --yes"],
  })
    .option("--timeout <minutes>", "how long to wait", "60")
    .action(async (id: string, options: { timeout: string }) => {
      const limitMs = wholeNumber(options.timeout, "--timeout", { least: 1, most: 1440 }) * 60_000;
      const client = await ctx.client();
      const approval = await withProgress(ctx, "Waiting for a decision", () =>
        awaitDecision(ctx, client, { id, limitMs }),
      );
      ctx.output.result(approval, (paint) => describe(approval, paint));
      if (approval.status !== "approved") throw notApproved(approval);
    });
}

// Shorter than the time after which clients and proxies consider a connection dead.
const waitSeconds = 20;

async function awaitDecision(
  ctx: CliContext,
  client: Client,
  { id, limitMs }: { id: string; limitMs: number },
): Promise<Approval> {
  const end = Date.now() + limitMs;
  for (let wait = waitSeconds; ;) {
    const ask = () => client.call("approvals.get", { params: { id }, query: { wait }, signal: ctx.signal });
    const approval = await patiently(ctx, ask);
    wait = Math.min(waitSeconds, Math.ceil((end - Date.now()) / 1000));
    if (approval.status !== "pending" || wait <= 0) return approval;
  }
}

function notApproved({ status }: Approval): CliError {
  if (status === "pending")
    return new CliError("approvalRequired", "timeout", {
      message: "The request is still waiting for a decision.",
      hint: "Run the command again to go on waiting. A request expires a day after it was made.",
    });
  return new CliError("refused", `approval_${status}`, {
    message: `The request is ${status}.`,
    hint: "`berth approvals` lists the requests; the command that needs one makes a new one.",
  });
}

function describe(approval: Approval, paint: Paint): string {
  const { id, status, summary, project, method, path, requested_by, created_at, expires_at, decided_at } = approval;
  return columns([
    ["Approval", paint.bold(id)],
    ["Status", paintStatus(paint, status)],
    ["Request", oneLine(summary)],
    ...(project === null ? [] : [["Project", project]]),
    ["Sent", oneLine(`${method} ${path}`)],
    ["Token", oneLine(requested_by.token_name)],
    ["Asked", relativeTime(created_at)],
    ...(decided_at === null ? [] : [["Decided", relativeTime(decided_at)]]),
    ...(expires_at === null ? [] : [["Ends", relativeTime(expires_at)]]),
  ]);
}

/** Shows what a person compares before they let a deploy go live, as the page of the request does. */
function reviewText(review: Approval["review"], paint: Paint): string[] {
  if (review === null) return [];
  const { live, commit, url, counts, rehearsal } = review;
  const { state, reason, lines, deployment } = rehearsal;
  const less = counts === null || counts.removed === 0 ? "" : `, without ${counts.removed} that serve now`;
  const said = counts === null ? "" : ` (${counts.added} new ${counts.added === 1 ? "commit" : "commits"}${less})`;
  const rows: string[][] = [
    ["Serves now", live === null ? "nothing" : `deployment ${live.number}, ${live.commit.slice(0, 8)}`],
    ["Would serve", `${commit.slice(0, 8)}${said}`],
    ...(url === null ? [] : [["Look at it", url]]),
    [
      "Rehearsal",
      `${state.replace("_", " ")}${deployment === null ? "" : ` (deployment ${deployment})`}${reason === null ? "" : `: ${oneLine(reason)}`}`,
    ],
  ];
  const did = lines.map((line) => `  ${oneLine(line, 200)}`);
  return ["", columns(rows), ...did, "", linesText(review, paint, ": its page, and `berth compare`, show all")];
}
