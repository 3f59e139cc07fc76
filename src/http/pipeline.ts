import { refusal } from "../contract/access.ts";
import type { RouteName } from "../contract/routes.ts";
import type { Row, SuccessStatus } from "../contract/table.ts";
import {
  Refused,
  type ActivityNote,
  type Caller,
  type Context,
  type RefusalText,
  type Surroundings,
  type Waiting,
} from "../features/context.ts";
import type { Log } from "../kit/log.ts";
import type { Db, Tx } from "../store/database.ts";
import type { Authenticator } from "./authenticator.ts";
import { handlers, recordActivity, resources } from "./handlers.ts";
import { parseInput, type ParsedInput, type RawInput } from "./parse.ts";

/** What a request is answered with; `text` is JSON, absent for 204. */
export interface Answer {
  readonly status: SuccessStatus;
  readonly text?: string;
}

export interface PipelineRequest extends RawInput {
  readonly authorization: string | undefined;
  readonly requestId: string;
}

export interface PipelineOptions {
  readonly world: Surroundings;
  readonly authenticator: Pick<Authenticator, "authenticate">;
  readonly log: Log;
}

/**
 * Everything between a parsed body and its answer, the same for every row: who calls, may they, does the request make sense,
 * do it in one transaction with its activity row, and let out only what the row declares. Throws `Refused` and faults.
 */
export async function answer(options: PipelineOptions, row: Row, request: PipelineRequest): Promise<Answer> {
  const caller = row.access === "public" ? undefined : await authenticate(options, request);
  if (caller !== undefined) mayCall(row, caller);
  const input = await parse(options, row, request, caller);
  const call = new Call(options, row, request, caller);
  const done = changesNothing(row) ? await call.handle(options.world.db, input) : await call.transact(input);
  return call.present(row.waits ? await inTime(done as Waiting<unknown>) : done);
}

// A rollback waits for a start of 60 s and a drain; whoever waits longer asks again.
const outcomeDeadlineMs = 240_000;

async function authenticate({ authenticator }: PipelineOptions, request: PipelineRequest): Promise<Caller> {
  const text = /^Bearer +(\S+)$/i.exec(request.authorization ?? "")?.[1];
  const found = text === undefined ? undefined : await authenticator.authenticate(text);
  if (found === undefined) throw new Refused("unauthorized");
  if (found.suspended) throw new Refused("org_suspended");
  return found.caller;
}

function mayCall(row: Row, caller: Caller): void {
  const refused = refusal(caller, row);
  if (refused === "insufficient_scope")
    throw new Refused(refused, { error: `The token lacks the scope ${row.scope}.` });
  if (refused !== undefined) throw new Refused(refused);
  // Nobody can be asked yet, and a token that must ask may not go ahead without.
  if (row.approval && caller.approval_mode)
    throw new Refused("forbidden", { error: "This token is in approval mode and may not do this by itself." });
}

// What a caller cannot see is missing, whatever else is wrong with the request.
async function parse(
  { world }: PipelineOptions,
  row: Row,
  request: PipelineRequest,
  caller: Caller | undefined,
): Promise<ParsedInput> {
  const input = parseInput(row, request);
  if (!(input instanceof Refused)) return input;
  if (caller && input.code === "invalid_request" && !(await exists(world.db, row, request, caller)))
    throw new Refused("not_found");
  throw input;
}

async function exists(db: Db, row: Row, request: PipelineRequest, caller: Caller): Promise<boolean> {
  const resource = resources.find(({ prefix }) => `${row.path}/`.startsWith(`${prefix}/`));
  if (resource === undefined) return true;
  const { slug, id } = request.params as Readonly<Record<string, string>>;
  return (await resource.find(db, caller, slug ?? id ?? "")) !== undefined;
}

function changesNothing(row: Row): boolean {
  return row.method === "GET";
}

/** One request that is being handled. */
class Call {
  readonly #options: PipelineOptions;
  readonly #row: Row;
  readonly #request: PipelineRequest;
  readonly #caller: Caller | undefined;
  #status: SuccessStatus;
  #note: ActivityNote = {};

  constructor(options: PipelineOptions, row: Row, request: PipelineRequest, caller: Caller | undefined) {
    this.#options = options;
    this.#row = row;
    this.#request = request;
    this.#caller = caller;
    this.#status = row.success[0];
  }

  /** The handler and the activity row in one transaction. */
  transact(input: ParsedInput): Promise<unknown> {
    return this.#options.world.db.transaction().execute(async (tx) => {
      const result = await this.handle(tx, input);
      await this.#writeActivity(tx);
      return result;
    });
  }

  /** A row that only reads needs no transaction: each of its statements sees a state that was true. */
  handle(db: Db | Tx, input: ParsedInput): Promise<unknown> {
    return handlerOf(this.#row)(this.#context(db as Tx), input);
  }

  /** What the row declares of a result, as JSON. */
  present(result: unknown): Answer {
    if (this.#row.result === null) return { status: this.#status };
    return { status: this.#status, text: JSON.stringify(this.#row.result.parse(result)) };
  }

  #context(tx: Tx): AnyContext {
    const { world, log } = this.#options;
    const said = { request_id: this.#request.requestId, route: this.#row.name };
    return {
      tx,
      // Handlers of public rows have no use for a caller.
      caller: this.#caller as Caller,
      world,
      now: world.clock.now(),
      // Made when it is asked for, because hardly any request says something.
      get log() {
        return log.child(said);
      },
      fail: (code: Refused["code"], more?: RefusalText) => {
        throw new Refused(code, more);
      },
      answer: (status: SuccessStatus) => void (this.#status = status),
      note: (note: ActivityNote) => void (this.#note = { ...this.#note, ...note }),
    } as AnyContext;
  }

  async #writeActivity(tx: Tx): Promise<void> {
    const { project_id = null, target = null, detail = {}, silent = false } = this.#note;
    if (this.#row.activity === null || silent || this.#caller === undefined) return;
    const { org_id, token_id: actor_token_id, token_name: actor_name } = this.#caller;
    await recordActivity(tx, {
      org_id,
      project_id,
      actor_token_id,
      actor_name,
      action: this.#row.activity,
      target,
      detail,
    });
  }
}

type AnyContext = Context<RouteName>;
type AnyHandler = (ctx: AnyContext, input: ParsedInput) => Promise<unknown>;

/** `projects.create` to `handlers.projects.create`; that each exists is what the type of `handlers` promises. */
function handlerOf(row: Row): AnyHandler {
  const [noun, verb] = row.name.split(".") as [keyof typeof handlers, string];
  return (handlers[noun] as unknown as Record<string, AnyHandler>)[verb] as AnyHandler;
}

async function inTime({ outcome }: Waiting<unknown>): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () =>
        reject(
          new Refused("unavailable", { error: "It takes longer than expected and goes on. Look again in a moment." }),
        ),
      outcomeDeadlineMs,
    );
  });
  try {
    return await Promise.race([outcome(), late]);
  } finally {
    clearTimeout(timer);
  }
}
