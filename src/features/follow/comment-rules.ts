import { z } from "zod";
import { quoted } from "../../kit/quoted.ts";
import { parseJson } from "../../kit/parse-json.ts";
import type { FollowProvider } from "../../contract/follow.ts";
import { hostApi, type HostRequest } from "./rules.ts";

/** What a comment says about a preview. */
export interface CommentFacts {
  readonly id: string;
  /** The project that it belongs to. */
  readonly of: string;
  readonly branch: string;
  readonly commit: string | null;
  readonly state: "waiting" | "pending" | "success" | "failure" | "removed";
  readonly url: string;
  /** Where the builds and logs are. */
  readonly page: string;
  readonly expires_at: string | null;
  /** Of the commit on a copy of the project's data; null when there was none. */
  readonly rehearsal: string | null;
}

const states = {
  waiting: "waits for its first build",
  pending: "is being built; an earlier version may serve meanwhile",
  success: "is live",
  failure: "could not be built; an earlier version, if there was one, stays",
  removed: "was removed, with its data",
};

/** Returns a line that tells Berth's own comment about a preview from all others. */
export const commentMarker = (previewId: string): string => `<!-- berth:preview ${previewId} -->`;

/** Returns the text of a comment about a preview, in Markdown. Of its data it tells nothing: anybody may read the comment. */
export function commentText(facts: CommentFacts): string {
  const { id, of, branch, commit, state, url, page, expires_at, rehearsal } = facts;
  // Whoever copies a command from a comment runs nothing that the branch's name says.
  const word = quoted(codeText(branch));
  const lines = [commentMarker(id), `**The preview of ${code(branch)} ${states[state]}.**`];
  if (state === "removed") return `${lines.join("\n")}\n`;
  const rows = [
    ["URL", url],
    ...(commit === null ? [] : [["Commit", code(commit.slice(0, 8))]]),
    [
      "Rehearsal on a copy of the project's data",
      rehearsal ?? `none (${code(`berth rehearse --ref ${word} -p ${of}`)})`,
    ],
    [
      "Ends",
      expires_at === null ? "pinned: it stays" : `${expires_at.slice(0, 16).replace("T", " ")} UTC, or with the branch`,
    ],
    ["Builds and logs", page],
  ];
  const table = ["| | |", "|---|---|", ...rows.map(([name, cell]) => `| ${name} | ${cell} |`)];
  const remove = `To remove it: delete the branch, or ${code(`berth preview delete ${word} -p ${of}`)}.`;
  return `${[...lines, "", ...table, "", remove].join("\n")}\n`;
}

/** Shows text as code in a table: a branch's name must not become markup, a mention or a link. */
function code(text: string): string {
  return `\`${codeText(text).replaceAll("|", "\\|")}\``;
}

const codeText = (text: string) => text.replaceAll("`", "'");

export interface PullRequest {
  readonly number: number;
  readonly url: string;
}

/** The requests of a host for the comment on a pull or merge request, and how its answers are read. Undefined: an answer that was cut. */
export type CommentHost = ReturnType<typeof commentHost>;

interface Asked {
  readonly provider: FollowProvider;
  readonly url: string;
  readonly branch: string;
  /** No comment about the preview is older. */
  readonly since: string;
}

/** Returns how a host is asked for the comment about the preview of a branch of the repository itself; a fork's requests are left out. */
export function commentHost({ provider, url, branch, since }: Asked, token: string) {
  const { api, owner, headers } = hostApi({ provider, url }, token);
  const isGitlab = provider === "gitlab";
  const get = (path: string, query: Readonly<Record<string, string>>): HostRequest => ({
    ...{ method: "GET", url: `${api}${path}?${new URLSearchParams(query).toString()}`, headers, body: "" },
  });
  const send = (method: "POST" | "PUT" | "PATCH", path: string, text: string): HostRequest => ({
    ...{ method, url: `${api}${path}`, headers, body: JSON.stringify({ body: text }) },
  });
  const find = {
    github: { path: "/pulls", query: { state: "open", head: `${owner}:${branch}`, per_page: "1" } },
    gitlab: { path: "/merge_requests", query: { state: "opened", source_branch: branch, per_page: "5" } },
    // It cannot filter by branch.
    gitea: { path: "/pulls", query: { state: "open", sort: "recentupdate", limit: "30" } },
  }[provider === "other" ? "gitea" : provider];
  const notes = (request: number) => (isGitlab ? `/merge_requests/${request}/notes` : `/issues/${request}/comments`);
  return {
    find: get(find.path, find.query),
    found: (answer: string) => requestIn(answer, branch),
    list: (request: number) =>
      get(
        notes(request),
        isGitlab ? { sort: "desc", order_by: "created_at", per_page: "100" } : { since, per_page: "100" },
      ),
    /** Returns the id of the comment that begins with this line. */
    listed(answer: string, marker: string) {
      const all = read(answer, comments);
      return all && (all.find(({ body }) => body?.startsWith(marker) === true)?.id ?? null);
    },
    add: (request: number, text: string) => send("POST", notes(request), text),
    added: (answer: string) => read(answer, comment)?.id ?? null,
    edit: (request: number, id: string, text: string) =>
      isGitlab ? send("PUT", `${notes(request)}/${id}`, text) : send("PATCH", `/issues/comments/${id}`, text),
  };
}

const comment = z.object({ id: z.number().int().transform(String), body: z.string().nullish() });
const comments = z.array(comment);

const repository = z.object({ id: z.number() }).nullish();
const side = z.object({ ref: z.string(), repo: repository });
const requests = z.array(
  z.union([
    z.object({ number: z.number().int(), html_url: z.string(), head: side, base: side }),
    z.object({
      ...{ iid: z.number().int(), web_url: z.string(), source_branch: z.string() },
      ...{ source_project_id: z.number(), target_project_id: z.number() },
    }),
  ]),
);

function requestIn(answer: string, branch: string): PullRequest | null | undefined {
  const all = read(answer, requests);
  for (const one of all ?? [])
    if ("iid" in one) {
      if (one.source_branch === branch && one.source_project_id === one.target_project_id)
        return { number: one.iid, url: one.web_url };
    } else if (one.head.ref === branch && one.head.repo?.id !== undefined && one.head.repo.id === one.base.repo?.id)
      return { number: one.number, url: one.html_url };
  return all && null;
}

const read = <T>(answer: string, schema: z.ZodType<T>): T | undefined => schema.safeParse(parseJson(answer)).data;
