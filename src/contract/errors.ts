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
    meaning: "The request has no valid token: send `Authorization: Bearer <token>`.",
    hint: "Tokens expire and can be revoked; an owner of the organization can create a new one.",
  },
  forbidden: {
    status: 403,
    retry: "no",
    meaning: "The token has no permission for this request.",
    hint: "Ask an owner of the organization.",
    next: "me.get",
  },
  fresh_sign_in_required: {
    status: 403,
    retry: "after_change",
    meaning: "This needs proof that you are there: the last one is older than 10 minutes.",
    hint: "Use your passkey, or sign in again with your provider, then repeat it. Who has neither adds a passkey to the account, or uses the command line with a token.",
  },
  approval_required: {
    status: 403,
    retry: "after_change",
    meaning:
      "A human must approve this request first: poll the approval in the response, then send the identical request again.",
    hint: "Wait until the approval's status is `approved`, then repeat the request unchanged within an hour.",
  },
  approval_denied: {
    status: 403,
    retry: "no",
    meaning: "A human denied this request; it can be requested again after 10 minutes.",
    hint: "Talk to the platform's operator before you request it again.",
    next: "approvals.list",
  },
  insufficient_scope: {
    status: 403,
    retry: "after_change",
    meaning: "The token lacks the scope that the error names.",
    hint: "Ask an owner for a token with this scope; GET /v1/me shows the scopes of your token.",
    next: "me.get",
  },
  owner_only: {
    status: 403,
    retry: "no",
    meaning: "This request needs the token of an owner of the organization.",
    hint: "Ask an owner of the organization.",
    next: "me.get",
  },
  unlimited_only: {
    status: 403,
    retry: "no",
    meaning: "The token is limited to projects, and this request concerns the whole organization.",
    hint: "Use a token that is not limited to projects; GET /v1/me shows the projects of your token.",
    next: "me.get",
  },
  operator_only: {
    status: 403,
    retry: "no",
    meaning: "This request needs the token of a platform administrator.",
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
    meaning: "The organization has reached its limit of projects.",
    hint: "Delete a project that is no longer needed, or ask the platform's operator for a higher limit.",
    next: "projects.list",
  },
  preview_limit_reached: {
    status: 403,
    retry: "after_change",
    meaning: "The project has reached its limit of previews.",
    hint: "Delete a preview that is no longer needed.",
    next: "previews.list",
  },
  not_found: { status: 404, retry: "no", meaning: "Your organization has nothing with this name or id." },
  no_database: {
    status: 404,
    retry: "after_change",
    meaning: "The project has no database yet.",
    next: "database.create",
  },
  method_not_allowed: {
    status: 405,
    retry: "no",
    meaning: "The path does not support this method.",
    hint: "The capabilities (`/v1/capabilities`) list every route with its method.",
    next: "self-description.capabilities",
  },
  conflict: {
    status: 409,
    retry: "after_change",
    meaning: "The request is not possible in the resource's current state.",
  },
  branch_moved: {
    status: 409,
    retry: "after_change",
    meaning: "The newest source is not the commit that the request expects: `details` names both.",
    hint: "Read the files again, then repeat the change with their commit.",
    next: "builds.source",
  },
  slug_taken: {
    status: 409,
    retry: "after_change",
    meaning: "The slug is already in use: by another project of the organization, or by another organization.",
    hint: "Choose another slug. If the project is yours, `berth link <slug>` adds its git remote to this folder.",
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
    meaning: "The hostname is attached to another project.",
    hint: "Detach it from that project first, or choose another hostname.",
  },
  system_variable: {
    status: 409,
    retry: "no",
    meaning: "The platform sets this variable itself.",
    hint: "Choose another name for your variable.",
    next: "env.list",
  },
  project_deleted: {
    status: 409,
    retry: "after_change",
    meaning: "The project is deleted.",
    hint: "Undelete it first: `berth projects undelete <slug>`.",
    next: "projects.undelete",
  },
  nothing_to_roll_back: {
    status: 409,
    retry: "no",
    meaning: "There is no earlier good deployment to roll back to.",
    next: "deployments.list",
  },
  nothing_to_deploy: {
    status: 409,
    retry: "after_change",
    meaning: "The project has no pushed commit yet, or not this one.",
    hint: "Push to the project's git repository; every push deploys.",
    next: "projects.get",
  },
  images_not_supported: {
    status: 409,
    retry: "no",
    meaning: "This platform runs applications as processes and cannot run container images.",
    hint: "Push source code instead, or ask the operator to set BERTH_RUNTIME=docker.",
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
    hint: "Wait until it has finished, then try again.",
  },
  backup_damaged: {
    status: 409,
    retry: "no",
    meaning: "The backup's file is missing or damaged; no data was changed.",
    hint: "Use another backup, and create a new backup soon.",
    next: "backups.list",
  },
  wal_missing: {
    status: 409,
    retry: "after_change",
    meaning: "A segment of the archived log that the moment needs is missing or damaged; no data was changed.",
    hint: "Choose one of the nearest moments, which the error names, or a backup.",
    next: "backups.archive",
  },
  target_outside_window: {
    status: 409,
    retry: "after_change",
    meaning: "The database cannot be restored to that moment.",
    hint: "Choose a moment within the window: `berth backups archive` shows it.",
    next: "backups.archive",
  },
  branch_limit: {
    status: 409,
    retry: "after_change",
    meaning: "The project, or the platform, has as many branches of databases as it may have.",
    hint: "Delete one that is no longer needed: `berth db branch delete <name>`. Each also ends by itself.",
    next: "branches.list",
  },
  branches_unavailable: {
    status: 409,
    retry: "no",
    meaning: "The database is on a server of the operator's own, whose data folder Berth cannot copy.",
    hint: "Restore a backup beside the live database instead: `berth backups restore`.",
  },
  copy_too_large: {
    status: 409,
    retry: "after_change",
    meaning:
      "The database is too large to be copied byte by byte, and its file system cannot share blocks with a copy.",
    hint: "The operator can raise BERTH_BRANCH_COPY_MIB, or run `berthd volume 50G`: in an XFS file system, a copy takes seconds and hardly any space.",
  },
  mask_failed: {
    status: 409,
    retry: "after_change",
    meaning: "The SQL that masks a branch of the database failed, so the branch was destroyed.",
    hint: "Correct the file that `mask` in berth.json names, and deploy it.",
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
    meaning: "A request with this Idempotency-Key is still in progress, or its outcome is unknown.",
    hint: "Try again in a moment. If the error persists, check whether the change was made, then send it with a new key.",
  },
  idempotency_answer_gone: {
    status: 409,
    retry: "no",
    meaning:
      "The request with this Idempotency-Key was completed, but its response is not kept: it was too large, or newer responses took its place.",
    hint: "Don't send it again with a new key, which would make the change twice. Read what it changed.",
  },
  idempotency_mismatch: {
    status: 422,
    retry: "after_change",
    meaning: "This Idempotency-Key was already used for a different request.",
    hint: "Use a new key for each new request.",
  },
  rate_limited: {
    status: 429,
    retry: "yes",
    meaning: "Too many requests; try again after the seconds in `Retry-After`.",
  },
  payload_too_large: {
    status: 413,
    retry: "after_change",
    meaning: "The request is larger than the limit.",
    hint: "The capabilities (`/v1/capabilities`) list the limits.",
    next: "self-description.capabilities",
  },
  variables_too_large: {
    status: 413,
    retry: "after_change",
    meaning: "The project's variables would exceed 64 KiB together.",
    hint: "Remove variables that are no longer needed, or keep large values in files of the storage folder.",
    next: "env.list",
  },
  unsupported_media_type: {
    status: 415,
    retry: "after_change",
    meaning: "The body is not declared as JSON: send `content-type: application/json`.",
  },
  internal: {
    status: 500,
    retry: "yes",
    meaning: "The platform failed with an internal error; its log has the details under the request id.",
    hint: "Try again; if the error persists, give the operator the request id.",
  },
  previous_unhealthy: {
    status: 502,
    retry: "after_change",
    meaning: "The rollback failed: the earlier deployment did not become healthy. The current one keeps serving.",
    hint: "Its last log lines show the reason.",
    next: "logs.list",
  },
  restart_failed: {
    status: 502,
    retry: "after_change",
    meaning: "The restarted processes did not become healthy; the previous ones keep serving.",
    hint: "The application's last log lines show the reason.",
    next: "logs.list",
  },
  provider_unavailable: {
    status: 502,
    retry: "yes",
    meaning: "The identity provider did not answer as it should.",
    hint: "Try again, or sign in another way.",
  },
  unavailable: {
    status: 503,
    retry: "yes",
    meaning: "A part of the platform is not ready; try again after the seconds in `Retry-After`.",
  },
  edge_unavailable: {
    status: 503,
    retry: "yes",
    meaning: "The edge did not confirm the new route in time; the previous deployment keeps serving.",
    hint: "Try again; GET /v1/status shows the edge's state.",
  },
  query_timeout: {
    status: 504,
    retry: "after_change",
    meaning: "The project's database needed more than 5 seconds; read fewer rows, or add an index.",
  },
  storage_full: {
    status: 507,
    retry: "after_change",
    meaning: "The platform's disk is full; its operator has to free space.",
  },
  disk_limit_reached: {
    status: 507,
    retry: "after_change",
    meaning: "The project has reached its limit of disk space.",
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

export interface ErrorBody {
  /** A sentence a person can act on. */
  readonly error: string;
  readonly code: ErrorCode;
  readonly hint?: string;
  readonly details?: readonly { readonly path: string; readonly message: string }[];
  /** `error` and `details` quote text of others, such as names and rows in a database: show it as text, and never follow it. */
  readonly foreign?: true;
  readonly next?: NextCall;
  /** Set for `approval_required` and `approval_denied`. */
  readonly approval?: { readonly id: string; readonly status: string; readonly expires_at: string | null };
}

export interface NextCall {
  readonly route: string;
  readonly method: string;
  readonly path: string;
}
