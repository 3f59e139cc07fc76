import type { ErrorBody, ErrorCode, NextCall } from "../contract/errors.ts";

/** Thrown by `ctx.fail`; the request pipeline turns it into the response. */
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

/** What the response says in addition to the code. */
export interface RefusalText {
  readonly error?: string;
  readonly hint?: string;
  readonly details?: ErrorBody["details"];
  readonly foreign?: true;
  readonly next?: NextCall;
  readonly approval?: ErrorBody["approval"];
  /** Retrying may help after this time. */
  readonly retryAfterSeconds?: number;
}
