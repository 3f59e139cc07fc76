import { awaitOutcome, type AwaitedOutcome } from "../await-outcome.ts";
import type { Context, RefusalText } from "../context.ts";
import { operationOf } from "./operations.ts";

/** Waits until the operation has ended, successfully or not, and returns it. */
export function ended(ctx: Waiter, awaited: AwaitedOutcome): Promise<Operation> {
  return awaitOutcome(ctx.platform.wakeups, awaited, async () => {
    const operation = await operationOf(ctx.platform.db, ctx.caller.org_id, awaited.id);
    return operation?.status === "running" ? undefined : operation;
  });
}

type Waiter = Pick<Context<"backups.get">, "platform" | "caller">;
type Operation = NonNullable<Awaited<ReturnType<typeof operationOf>>>;

interface Refusing {
  readonly fail: (code: "storage_full" | "unavailable", more: RefusalText) => never;
}

/** Refuses the request with a failure that any operation may have. */
export function refuse({ fail }: Refusing, operation: Operation): never {
  return fail(operation.problem_code === "storage_full" ? "storage_full" : "unavailable", said(operation));
}

export function said({ problem }: Operation): RefusalText {
  return { error: problem ?? "The operation on the backup failed." };
}
