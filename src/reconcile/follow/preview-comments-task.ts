import * as follow from "../../features/follow/follow.ts";
import { shownEnd } from "../../features/projects/projects.ts";
import type { Task, Platform } from "../platform.ts";
import { inProgress } from "../leased-work.ts";

const timeoutMs = 10_000;
// Several requests, each with its time.
const holdSeconds = 60;
const mostFailures = 6;
// A pull request is looked for about a day long.
const mostLooks = 100;
const mostAtOnce = 4;
const perOrganization = 2;
const longestPauseMs = 15 * 60_000;
const restMs = 20_000;
// A host tells much about a pull request.
const excerptBytes = 1024 * 1024;

/** Comments on the pull requests of previewed branches: one comment a preview, which is changed with its state. */
export function previewCommentsTask(platform: Platform): Task {
  const { db, log } = platform;
  return {
    name: "preview-comments",
    periodMs: 15_000,
    topics: ["builds", "outcomes", "follow"],
    async run(signal) {
      const running = new Map<follow.DueComment, Promise<void>>();
      let looked = 0;
      await follow.deleteComments(db);
      for (;;) {
        const follows = [...running.keys()].map(({ follow_id, org_id }) => ({ id: follow_id, org_id }));
        const mayTake = running.size < mostAtOnce && !signal.aborted;
        const due = mayTake
          ? await follow.takeComment(db, holdSeconds, inProgress(follows, perOrganization))
          : undefined;
        if (due !== undefined) {
          const work = comment(platform, due, signal)
            .catch((error: unknown) => log.error({ err: error }, "could not record a comment; it is looked for again"))
            .finally(() => running.delete(due));
          running.set(due, work);
          looked += 1;
        } else if (running.size > 0) await Promise.race(running.values());
        else return { detail: `${looked} looked at` };
      }
    },
  };
}

async function comment(platform: Platform, due: follow.DueComment, signal: AbortSignal): Promise<void> {
  const end = await tell(platform, due, signal);
  // The platform is stopping, so this is no failure of the host; the next start looks again.
  if (!signal.aborted) await follow.endComment(platform.db, due, end);
}

/** Finds the pull request and the comment as far as they are not known, and writes the comment. */
async function tell(platform: Platform, due: follow.DueComment, signal: AbortSignal): Promise<follow.CommentEnd> {
  const { facts, since, says, failures } = due;
  const token = follow.openFollow(platform.vault, due.follow_id, "token", due.sealed_token) ?? "";
  const host = follow.commentHost({ ...due, branch: facts.branch, since }, token);
  const ask = (request: follow.HostRequest) => send(platform, request, signal);
  const found = due.request === null ? await findRequest(host, ask) : {};
  if (found instanceof Problem) return afterProblem(found, failures);
  const request = found.request ?? (due.request === null ? null : { number: due.request });
  if (request === null) {
    const isOver = failures + 1 >= mostLooks || facts.state === "removed";
    return {
      problem: null,
      failures: failures + 1,
      againMs: isOver ? null : follow.retryAfterMs(failures + 1, longestPauseMs),
    };
  }
  const text = follow.commentText({
    ...facts,
    ...{ url: platform.appUrl(facts.hostname), page: `${platform.controlUrl()}/projects/${facts.slug}/builds` },
    expires_at: shownEnd(facts.expires_at ?? ""),
  });
  const written = await write(host, ask, { number: request.number, comment_id: due.comment_id, text, id: facts.id });
  if (written instanceof Problem) return { ...found, ...afterProblem(written, failures) };
  return { ...found, ...written, shown: says, problem: null, failures: 0, againMs: restMs };
}

type Ask = (request: follow.HostRequest) => Promise<string | Problem>;

async function findRequest(host: follow.CommentHost, ask: Ask): Promise<Pick<follow.CommentEnd, "request"> | Problem> {
  const answer = await ask(host.find);
  if (answer instanceof Problem) return answer;
  const request = host.found(answer);
  if (request === undefined) return new Problem("The host's list of pull requests could not be read.", false);
  return request === null ? {} : { request };
}

/** Changes the comment, or posts it unless a host has it already from an attempt whose end was not recorded. */
async function write(
  host: follow.CommentHost,
  ask: Ask,
  {
    number,
    text,
    id,
    ...known
  }: { readonly number: number; readonly comment_id: string | null; readonly text: string; readonly id: string },
): Promise<Pick<follow.CommentEnd, "comment_id"> | Problem> {
  let { comment_id } = known;
  if (comment_id === null) {
    const answer = await ask(host.list(number));
    if (answer instanceof Problem) return answer;
    const listed = host.listed(answer, follow.commentMarker(id));
    if (listed === undefined) return new Problem("The host's list of comments could not be read.", false);
    comment_id = listed;
  }
  const answer = await ask(comment_id === null ? host.add(number, text) : host.edit(number, comment_id, text));
  if (answer instanceof Problem) return answer;
  const posted = comment_id ?? host.added(answer);
  return posted === null ? {} : { comment_id: posted };
}

function afterProblem(
  { message, isFinal }: Problem,
  failures: number,
): Pick<follow.CommentEnd, "problem" | "failures" | "againMs"> {
  const isOver = isFinal || failures + 1 >= mostFailures;
  return {
    problem: message,
    failures: failures + 1,
    againMs: isOver ? null : follow.retryAfterMs(failures + 1, longestPauseMs),
  };
}

class Problem extends Error {
  /** Another attempt would end in the same way. */
  readonly isFinal: boolean;

  constructor(message: string, isFinal: boolean) {
    super(message);
    this.isFinal = isFinal;
  }
}

async function send({ ports }: Platform, request: follow.HostRequest, signal: AbortSignal): Promise<string | Problem> {
  const outcome = await ports.outgoingHttp.send({ ...request, timeoutMs, excerptBytes }, signal);
  if (outcome.outcome === "failed") return new Problem(outcome.reason, false);
  const { status, excerpt } = outcome;
  if (status >= 200 && status < 300) return excerpt;
  const isRight = status === 401 || status === 403 || status === 404;
  const hint = isRight
    ? " The token may not comment on pull requests, or somebody deleted the comment: `berth preview comment <branch>` prints it."
    : "";
  return new Problem(`The repository's host answered with status ${status}.${hint}`, isRight);
}
