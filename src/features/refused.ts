import type { ErrorBody, ErrorCode, NextCall } from "../contract/errors.ts";

/** Thrown by `ctx.fail` and turned into the answer by the pipeline. */
export class Refused extends Error {
  readonly code: ErrorCode;
  readonly more: RefusalText;
  constructor(code: ErrorCode, more: RefusalText = {}) {
    super(more.error ?? code);
    this.name = "Refused";
    this.code = code;
    this.more = more;
  }
}

/** What the answer says beyond the code. */
export interface RefusalText {
  readonly error?: string;
  readonly hint?: string;
  readonly details?: ErrorBody["details"];
  readonly next?: NextCall;
  readonly approval?: ErrorBody["approval"];
  /** When it may help to try again. */
  readonly retryAfterSeconds?: number;
}
