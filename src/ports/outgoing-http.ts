/**
 * Sends HTTP requests to addresses that tenants and the operator choose. A hostname is resolved once, and the connection goes to exactly that address.
 * Loopback, private, link-local and metadata addresses are refused unless the operator allows them. Redirects are returned, not followed.
 */
export interface OutgoingHttp {
  /** Sends a request, with a small body, and reads the start of the response. A failure of the other side is an outcome, never a rejection. */
  send(request: OutgoingRequest, signal: AbortSignal): Promise<OutgoingOutcome>;
}

export interface OutgoingRequest {
  /** Default: POST. A GET sends no body. */
  readonly method?: "GET" | "POST" | "PUT" | "PATCH";
  /** `http://` or `https://`. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Limits DNS look-up, connection and response together. */
  readonly timeoutMs: number;
  /** How much of the response body is read. The rest is not awaited. */
  readonly excerptBytes: number;
}

/** `reason` is a sentence for the tenant and contains no part of the address. */
export type OutgoingOutcome =
  | { readonly outcome: "answered"; readonly status: number; readonly contentType?: string; readonly excerpt: string }
  | { readonly outcome: "failed"; readonly reason: string };
