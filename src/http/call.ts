import { dryRun } from "../contract/dry-run.ts";
import { route, type RouteName } from "../contract/routes.ts";
import { secretFields, type Row, type SuccessStatus } from "../contract/table.ts";
import {
  Refused,
  type ActivityNote,
  type Caller,
  type Context,
  type NamedProject,
  type ReadInput,
  type RefusalText,
  type ServerEvent,
  type Tunnel,
  type Waiting,
} from "../features/context.ts";
import { linkSignals } from "../kit/link-signals.ts";
import type { Db, Tx } from "../store/database.ts";
import { requireRights } from "./admit.ts";
import { watchCaller, type CallerWatch } from "./caller-watch.ts";
import { answerTo } from "./errors.ts";
import type { Answer, PipelineOptions, PipelineRequest } from "./exchange.ts";
import { askAtGate, isGated, passGate } from "./gate.ts";
import { recordActivity } from "../features/activity/activity.ts";
import { affectedBy, askForApproval, type GatedRequest } from "../features/approvals/approvals.ts";
import type { HeldKey } from "../features/idempotency/idempotency.ts";
import { handlers } from "./handlers.ts";
import { findNamed, findNamedProject, requireWithinProjects } from "./named.ts";
import { pathOf } from "./next-call.ts";
import { parseInput, type ParsedInput } from "./parse.ts";

export class Call {
  readonly #options: PipelineOptions;
  readonly #row: Row;
  readonly #request: PipelineRequest;
  readonly #caller: Caller | undefined;
  #status: SuccessStatus;
  #project: NamedProject | undefined;
  #note: ActivityNote = {};
  #watch: CallerWatch | undefined;
  #look: Waiting<unknown>["look"];

  constructor(options: PipelineOptions, row: Row, request: PipelineRequest, caller: Caller | undefined) {
    this.#options = options;
    this.#row = row;
    this.#request = request;
    this.#caller = caller;
    this.#status = row.success[0];
  }

  /** Handles a row that only reads, without a transaction: each of its statements sees a consistent state. */
  async read(input: ParsedInput): Promise<Answer> {
    let streams = false;
    try {
      const result = await this.#handle(this.#options.platform.db, input);
      return this.#present(this.#row.waits ? await this.#inTime(result as Waiting<unknown>) : result);
    } catch (error) {
      if (!(error instanceof Streamed) && !(error instanceof Tunnelled)) throw error;
      const close = this.#caller && this.#options.streams.open(this.#caller);
      streams = true;
      const watch = this.#watched();
      const end = () => {
        watch.end();
        close?.();
      };
      const { signal } = watch;
      if (error instanceof Tunnelled) return { status: 200, tunnel: { work: error.work, signal, end } };
      return { status: 200, stream: { events: error.events, signal, end } };
    } finally {
      if (!streams) this.#watch?.end();
    }
  }

  /** Runs the handler, consumes its approval and writes the activity row in one transaction; for a row with `waits`, then waits. */
  async change(input: ParsedInput, key?: HeldKey): Promise<Answer> {
    try {
      const done = await this.#transaction((tx) => this.#act(tx, input, key));
      if (this.#row.changes_rights) this.#options.authenticator.forget();
      if (done.answer !== undefined) return done.answer;
      return await this.#outcome(done.waiting, key);
    } catch (error) {
      const ask = (request: GatedRequest) => this.#inSlot(() => askForApproval(this.#options.platform, request));
      return await askAtGate(error, ask, this.#look);
    } finally {
      this.#watch?.end();
    }
  }

  /** Does everything that `change` does before its commit, then rolls back. Returns what would happen, or refuses as `change` would. */
  async dryRun(input: ParsedInput): Promise<Answer> {
    const { platform } = this.#options;
    const caller = this.#caller as Caller;
    await this.#transaction(async (tx) => {
      await this.#handle(tx, input);
      throw new DryRun();
    })
      .catch((error: unknown) => {
        if (!(error instanceof DryRun)) throw error;
      })
      .finally(() => this.#watch?.end());
    await this.#look?.();
    const { project_id = this.#project?.id, target = null, detail = {}, silent = false } = this.#note;
    const { org_id } = caller;
    const reaches = this.#row.approval && project_id !== undefined;
    const said = {
      dry_run: true,
      route: this.#row.name,
      would_answer: this.#status,
      would_change: silent ? null : { action: this.#note.action ?? this.#row.activity, target, detail },
      needs_approval: isGated(this.#row, caller) && this.#note.losesNothing !== true,
      affects: reaches ? await affectedBy(platform, { org_id, project_id }) : null,
    };
    return { status: 200, text: JSON.stringify(dryRun.parse(said)) };
  }

  #transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#inSlot(() => this.#options.platform.db.transaction().execute(work));
  }

  // An organization's transactions that wait for a row lock could otherwise take every connection to the database.
  #inSlot<T>(work: () => Promise<T>): Promise<T> {
    const { org_id } = this.#caller as Caller;
    return this.#options.changeSlots.run(org_id, this.#request.gone(), work);
  }

  async #act(tx: Tx, input: ParsedInput, key: HeldKey | undefined): Promise<Acted> {
    // A transaction may run twice.
    this.#note = {};
    this.#status = this.#row.success[0];
    const caller = this.#caller as Caller;
    const mayBeGated = isGated(this.#row, caller);
    // Looked up before the handler runs, which may delete it.
    const named = mayBeGated ? await findNamed(tx, this.#row, caller, input.params) : undefined;
    const result = await this.#handle(tx, input);
    if (mayBeGated && this.#note.losesNothing !== true) {
      const approval_id = await passGate(tx, this.#gatedRequest(input, named?.id), this.#options.platform.clock.now());
      this.#note = { ...this.#note, detail: { ...this.#note.detail, approval_id } };
    }
    if (this.#row.waits) {
      const waiting = result as Waiting<unknown>;
      if (waiting.changesLate !== true) await this.#writeActivity(tx);
      await key?.commit(tx);
      return { waiting };
    }
    await this.#writeActivity(tx);
    const answer = this.#present(result);
    await key?.keep(tx, this.#kept(answer));
    return { answer };
  }

  /** Waits for the outcome of a committed change. A refusal is stored for repeated requests, unless the outcome is late or unavailable. */
  async #outcome(waiting: Waiting<unknown>, key: HeldKey | undefined): Promise<Answer> {
    const { db } = this.#options.platform;
    try {
      const answer = this.#present(await this.#inTime(waiting));
      await key?.keep(db, this.#kept(answer));
      return answer;
    } catch (error) {
      const { status, body } = answerTo(error, this.#request.params);
      const isFinal =
        error instanceof Refused && error.code !== "unavailable" && error.code !== "idempotency_in_progress";
      if (isFinal) await key?.keep(db, { status, text: JSON.stringify(body) });
      throw error;
    }
  }

  async #done({ outcome, changesLate }: Waiting<unknown>, signal: AbortSignal): Promise<unknown> {
    const result = await outcome(signal);
    if (changesLate === true) await this.#writeActivity(this.#options.platform.db);
    return result;
  }

  /** Waits for an outcome until the deadline, even after the client has left: the outcome is stored for repeated requests with the same key. */
  async #inTime(waiting: Waiting<unknown>): Promise<unknown> {
    const { closing, outcomeDeadlineMs } = this.#options;
    // A change in progress soon finishes and must not be reported as not done, so stopping the platform does not interrupt it.
    const over = waiting.changesLate === true ? linkSignals() : linkSignals(closing);
    const late = {
      error: "The change takes longer than expected and continues in the background. Check again in a moment.",
    };
    const timer = setTimeout(() => over.abort(new Refused("unavailable", late)), outcomeDeadlineMs);
    try {
      return await Promise.race([this.#done(waiting, over.signal), aborted(over.signal)]);
    } finally {
      clearTimeout(timer);
      over.release();
    }
  }

  #gatedRequest(input: ParsedInput, namedId: string | undefined): GatedRequest {
    const { name: route, method, path, summary } = this.#row;
    const { project_id = this.#project?.id ?? null, target = null, resource, detail = {} } = this.#note;
    // The project's id replaces the slug, which may later belong to another project.
    const { slug: _, ...params } = input.params as Record<string, unknown>;
    return {
      caller: this.#caller as Caller,
      route,
      method,
      path: pathOf(path, this.#request.params) ?? path,
      summary,
      resources: [namedId, resource].filter((id) => id !== undefined),
      params,
      // The query as sent, because a human approved exactly this request, whichever part of it the row reads.
      query: this.#request.query,
      // A file is read only once, by its handler; its digest is in the query.
      body: this.#row.upload === null ? input.body : undefined,
      secrets: secretFields(this.#row),
      project_id,
      target,
      detail,
    };
  }

  async #handle(tx: Tx | Db, input: ParsedInput): Promise<unknown> {
    if (this.#row.living) this.#project = await findNamedProject(tx, this.#row, this.#caller as Caller, input.params);
    const result = await handlerOf(this.#row)(this.#context(tx), input);
    if (this.#row.waits) this.#look = (result as Waiting<unknown>).look;
    return result;
  }

  /** Returns another row's result for the same caller, in the form that clients receive. */
  async #readOther(name: RouteName, { params, query = {} }: ReadInput): Promise<unknown> {
    const row = route(name);
    requireRights(row, this.#caller as Caller);
    await requireWithinProjects(this.#options.platform.db, row, this.#caller as Caller, params);
    const request = { ...this.#request, params, query, body: undefined };
    const input = parseInput(row, request);
    if (input instanceof Refused) throw input;
    const other = new Call(this.#options, row, request, this.#caller);
    const result = await other.#handle(this.#options.platform.db, input);
    return row.result?.parse(row.waits ? await other.#inTime(result as Waiting<unknown>) : result);
  }

  /** Serializes the declared fields of a result as JSON. */
  #present(result: unknown): Answer {
    if (this.#row.result === null) return { status: this.#status };
    return { status: this.#status, text: JSON.stringify(this.#row.result.parse(result)) };
  }

  /** Returns the response as it is stored for repeated requests: without the secret that is shown only once. */
  #kept(answer: Answer): Answer {
    const { secret } = this.#row;
    if (secret === null || answer.text === undefined) return answer;
    return { ...answer, text: JSON.stringify({ ...(JSON.parse(answer.text) as object), [secret]: null }) };
  }

  #context(tx: Db | Tx): AnyContext {
    const { platform, log } = this.#options;
    const said = { request_id: this.#request.requestId, route: this.#row.name };
    const watched = () => this.#watched();
    return {
      tx,
      // Handlers of public rows don't use the caller.
      caller: this.#caller as Caller,
      project: this.#project,
      platform,
      now: platform.clock.now(),
      lastEventId: this.#request.lastEventId,
      // Created on demand, because few requests log or last long.
      get log() {
        return log.child(said);
      },
      get signal() {
        return watched().signal;
      },
      read: (name: RouteName, input: ReadInput) => this.#readOther(name, input),
      fail: (code: Refused["code"], more?: RefusalText) => {
        throw new Refused(code, more);
      },
      stream: (events: AsyncIterable<ServerEvent>) => {
        throw new Streamed(events);
      },
      isUpgrade: this.#request.isUpgrade === true,
      tunnel: (work: (tunnel: Tunnel) => Promise<void>) => {
        throw new Tunnelled(work);
      },
      answer: (status: SuccessStatus) => void (this.#status = status),
      note: (note: ActivityNote) => void (this.#note = { ...this.#note, ...note }),
    } as AnyContext;
  }

  #watched(): CallerWatch {
    const { authenticator, platform, closing } = this.#options;
    const { token, gone } = this.#request;
    const ends = [closing, gone()];
    return (this.#watch ??= watchCaller({
      authenticator,
      wakeups: platform.wakeups,
      token: this.#caller && token,
      caller: this.#caller,
      ends,
    }));
  }

  async #writeActivity(db: Db | Tx): Promise<void> {
    const { target = null, detail = {}, silent = false, recordedLater = false } = this.#note;
    if (this.#row.activity === null || silent || recordedLater || this.#caller === undefined) return;
    const { org_id, token_id: actor_token_id, token_name: actor_name } = this.#caller;
    // An operator's change to another organization's project is not part of that project's own activity.
    const ownProject = this.#project?.org_id === org_id ? this.#project.id : null;
    const { project_id = ownProject } = this.#note;
    const { action = this.#row.activity } = this.#note;
    await recordActivity(db, { org_id, project_id, actor_token_id, actor_name, action, target, detail });
  }
}

type Acted =
  | { readonly answer: Answer; readonly waiting?: never }
  | { readonly answer?: never; readonly waiting: Waiting<unknown> };

class DryRun extends Error {}

/** Thrown by `ctx.stream`. */
class Streamed extends Error {
  readonly events: AsyncIterable<ServerEvent>;
  constructor(events: AsyncIterable<ServerEvent>) {
    super("the answer is a stream");
    this.events = events;
  }
}

/** Thrown by `ctx.tunnel`. */
class Tunnelled extends Error {
  readonly work: (tunnel: Tunnel) => Promise<void>;
  constructor(work: (tunnel: Tunnel) => Promise<void>) {
    super("the answer is a tunnel");
    this.work = work;
  }
}

type AnyContext = Context<RouteName>;
type AnyHandler = (ctx: AnyContext, input: ParsedInput) => Promise<unknown>;

/** Maps `projects.create` to `handlers.projects.create`; the type of `handlers` guarantees that each exists. */
function handlerOf(row: Row): AnyHandler {
  const [noun, verb] = row.name.split(".") as [keyof typeof handlers, string];
  return (handlers[noun] as unknown as Record<string, AnyHandler>)[verb] as AnyHandler;
}

/** Rejects with the signal's reason when it aborts. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
