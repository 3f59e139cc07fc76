/** Every error code: its HTTP status, its meaning, and whether retrying the same request can help. */
export const errors = {
  invalid_request: {
    status: 400,
    retry: "after_change",
    meaning: "The request is malformed; `details` names each wrong field.",
  },
  unauthorized: {
    status: 401,
    retry: "after_change",
    meaning: "No valid token: send `Authorization: Bearer <token>`.",
    hint: "Tokens expire and can be revoked; an owner of the organization makes new ones.",
  },
  forbidden: {
    status: 403,
    retry: "no",
    meaning: "This token may not do this.",
    hint: "Ask an owner of the organization.",
    next: "me.get",
  },
  approval_required: {
    status: 403,
    retry: "after_change",
    meaning:
      "A human must approve this request first: poll the approval that is named, then send the identical request.",
    hint: "Wait until the approval's status is `approved`, then repeat the request unchanged within an hour.",
  },
  approval_denied: {
    status: 403,
    retry: "no",
    meaning: "A human denied this request; it may be asked again 10 minutes later.",
    hint: "Ask the people who run this platform before you ask again.",
    next: "approvals.list",
  },
  insufficient_scope: {
    status: 403,
    retry: "after_change",
    meaning: "The token lacks the scope that the error names.",
    hint: "Ask an owner for a token with this scope; GET /v1/me shows what yours may do.",
    next: "me.get",
  },
  owner_only: {
    status: 403,
    retry: "no",
    meaning: "Only an owner of the organization may do this.",
    hint: "Ask an owner of the organization.",
    next: "me.get",
  },
  operator_only: {
    status: 403,
    retry: "no",
    meaning: "Only a platform admin may do this.",
    hint: "Ask the platform's operator.",
  },
  org_suspended: {
    status: 403,
    retry: "no",
    meaning: "The organization is suspended by the platform's operator.",
    hint: "Ask the operator to enable it again; nothing was deleted.",
  },
  project_limit_reached: {
    status: 403,
    retry: "after_change",
    meaning: "The organization has as many projects as it may have.",
    hint: "Delete a project that is no longer needed, or ask the platform's operator for a higher limit.",
    next: "projects.list",
  },
  not_found: { status: 404, retry: "no", meaning: "There is no such thing in your organization." },
  no_database: {
    status: 404,
    retry: "after_change",
    meaning: "The project has no database yet.",
    next: "database.create",
  },
  method_not_allowed: {
    status: 405,
    retry: "no",
    meaning: "The path exists, but not with this method.",
    hint: "The capabilities list every route with its method.",
    next: "self-description.capabilities",
  },
  conflict: { status: 409, retry: "after_change", meaning: "The request contradicts the present state." },
  slug_taken: {
    status: 409,
    retry: "after_change",
    meaning: "The slug is taken: by another project of the organization, or by another organization.",
    hint: "Choose another slug.",
  },
  key_taken: {
    status: 409,
    retry: "no",
    meaning: "The organization already has this SSH key.",
    hint: "Pushes with this key work already.",
    next: "ssh-keys.list",
  },
  hostname_taken: {
    status: 409,
    retry: "after_change",
    meaning: "Another project has this hostname.",
    hint: "Detach it from that project first, or choose another hostname.",
  },
  system_variable: {
    status: 409,
    retry: "no",
    meaning: "The platform sets this variable itself.",
    hint: "Choose another name for yours.",
    next: "env.list",
  },
  variables_too_large: {
    status: 409,
    retry: "after_change",
    meaning: "The project's variables would exceed 64 KiB together.",
    hint: "Remove variables that are no longer needed, or keep large values in files of the storage folder.",
    next: "env.list",
  },
  project_deleted: {
    status: 409,
    retry: "after_change",
    meaning: "The project is deleted; undelete it first.",
    next: "projects.undelete",
  },
  nothing_to_roll_back: {
    status: 409,
    retry: "no",
    meaning: "There is no earlier good deployment.",
    next: "deployments.list",
  },
  nothing_to_deploy: {
    status: 409,
    retry: "after_change",
    meaning: "Nothing was pushed yet, or the commit is unknown.",
    hint: "Push to the project's git repository; a push deploys by itself.",
    next: "projects.get",
  },
  images_not_supported: {
    status: 409,
    retry: "no",
    meaning: "This platform runs applications as processes, so it runs no container images.",
    hint: "The operator's setting BERTH_RUNTIME=docker runs them; a push of source works with either.",
  },
  deploy_in_progress: {
    status: 409,
    retry: "yes",
    meaning: "Another deployment of this project is in progress.",
    next: "deployments.list",
  },
  operation_in_progress: {
    status: 409,
    retry: "yes",
    meaning: "The project's database is being backed up, restored or verified.",
    hint: "Wait until that has ended.",
  },
  backup_damaged: {
    status: 409,
    retry: "no",
    meaning: "The backup's file is missing or not what was stored; nothing was touched.",
    hint: "Use another backup, and create a new one.",
    next: "backups.list",
  },
  last_owner_token: {
    status: 409,
    retry: "after_change",
    meaning: "The organization's last owner token cannot be deleted.",
    hint: "Create another owner token first.",
  },
  idempotency_in_progress: {
    status: 409,
    retry: "yes",
    meaning: "A request with this Idempotency-Key is still under way, or ended without its outcome being known.",
    hint: "Try again in a moment. If the error persists, check whether the change was made, then send it with a new key.",
  },
  idempotency_mismatch: {
    status: 422,
    retry: "after_change",
    meaning: "This Idempotency-Key was used for another request.",
    hint: "Use a new key for a new request.",
  },
  rate_limited: {
    status: 429,
    retry: "yes",
    meaning: "Too many requests; `Retry-After` says when to try again.",
  },
  payload_too_large: {
    status: 413,
    retry: "after_change",
    meaning: "The request is larger than the limit.",
    hint: "The capabilities list the limits.",
    next: "self-description.capabilities",
  },
  unsupported_media_type: {
    status: 415,
    retry: "after_change",
    meaning: "Bodies are JSON: send `content-type: application/json`.",
  },
  internal: {
    status: 500,
    retry: "yes",
    meaning: "A fault of the platform; the operator's log has it under the request id.",
    hint: "Try again; if it fails again, give the operator the request id.",
  },
  previous_unhealthy: {
    status: 502,
    retry: "after_change",
    meaning: "The earlier deployment did not become healthy; the present one still serves.",
    hint: "Its last log lines say why.",
    next: "logs.list",
  },
  restart_failed: {
    status: 502,
    retry: "after_change",
    meaning: "The restarted processes are not healthy; the ones before them keep serving.",
    hint: "The application's last log lines say why.",
    next: "logs.list",
  },
  unavailable: {
    status: 503,
    retry: "yes",
    meaning: "A part of the platform is not ready; `Retry-After` says when to try again.",
  },
  edge_unavailable: {
    status: 503,
    retry: "yes",
    meaning: "The edge did not confirm the new route in time; the deployment before it goes on serving.",
    hint: "Try again; GET /v1/status shows the edge's state.",
  },
  query_timeout: {
    status: 504,
    retry: "after_change",
    meaning: "The project's database took more than 5 seconds; ask for less, or add an index.",
  },
  storage_full: {
    status: 507,
    retry: "after_change",
    meaning: "The platform's disk has no room left for this; its operator has to make some.",
  },
  disk_limit_reached: {
    status: 507,
    retry: "after_change",
    meaning: "The project uses all the disk space that it may use.",
    hint: "Delete what is no longer needed, or ask the platform's operator for a higher limit.",
    next: "disk.get",
  },
} as const satisfies Record<string, ErrorDefinition>;

export interface ErrorDefinition {
  readonly status: number;
  readonly retry: "yes" | "no" | "after_change";
  readonly meaning: string;
  /** The default hint; a response may carry a more specific one. */
  readonly hint?: string;
  /** The name of the row to call next by default; a response may name another. */
  readonly next?: string;
}

export type ErrorCode = keyof typeof errors;

/** The body of every error. */
export interface ErrorBody {
  /** A sentence a person can act on. */
  readonly error: string;
  readonly code: ErrorCode;
  readonly hint?: string;
  readonly details?: readonly { readonly path: string; readonly message: string }[];
  /** The call to make next. */
  readonly next?: NextCall;
  /** Set for `approval_required` and `approval_denied`. */
  readonly approval?: { readonly id: string; readonly status: string; readonly expires_at: string | null };
}

/** A row of the API with its path filled in. */
export interface NextCall {
  readonly route: string;
  readonly method: string;
  readonly path: string;
}
