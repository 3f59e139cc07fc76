import { getRouteApi, Link } from "@tanstack/react-router";
import { ShieldCheck } from "lucide-react";
import type { ReactNode } from "react";
import type { Answer } from "../../../contract/client.ts";
import { approvalStates, statesOf } from "../../../contract/states.ts";
import { visible } from "../../data/format.ts";
import { useMe, whyNotDecide, usePages } from "../../data/api.ts";
import { buttonLook } from "../../ui/button.tsx";
import { Select } from "../../ui/field.tsx";
import { Older } from "../../ui/table.tsx";
import { Page, Empty, View } from "../../ui/page.tsx";
import { State, Status, Ago, Dated, Mono, Plain } from "../../ui/text.tsx";

type Approval = Answer<"approvals.list">["approvals"][number];

export interface ApprovalsSearch {
  readonly status?: Approval["status"];
}

const route = getRouteApi("/approvals");

const words: Record<Approval["status"], string> = {
  pending: "Waiting",
  approved: "Approved",
  denied: "Denied",
  consumed: "Used",
  expired: "Expired",
};

/** The page of actions that wait for a person's approval. Each links to its decision page, for users who may decide. */
export function ApprovalsPage() {
  const { status } = route.useSearch();
  const navigate = route.useNavigate();
  const approvals = usePages("approvals.list", { query: { status } });
  return (
    <Page
      title="Approvals"
      lead="A token in approval mode waits here before it deletes or restores anything. An owner decides, here or by the link that was sent by e-mail, webhook or the platform's log."
    >
      <div className="w-44">
        <Select
          aria-label="State"
          value={status ?? ""}
          onChange={(event) =>
            void navigate({
              search: event.target.value === "" ? {} : { status: event.target.value as Approval["status"] },
              replace: true,
            })
          }
        >
          <option value="">All</option>
          {statesOf(approvalStates).map((each) => (
            <option key={each} value={each}>
              {words[each]}
            </option>
          ))}
        </Select>
      </div>
      <View of={approvals}>
        {({ pages }) =>
          pages[0]?.approvals.length === 0 ? (
            <Nothing status={status} />
          ) : (
            <>
              <ul aria-label="Approvals" className="divide-y divide-line rounded-md border border-line">
                {pages.flatMap((page) => page.approvals.map((each) => <Request key={each.id} of={each} />))}
              </ul>
              <Older of={[approvals]} />
            </>
          )
        }
      </View>
    </Page>
  );
}

function Nothing({ status }: { readonly status: Approval["status"] | undefined }) {
  if (status !== undefined)
    return <Empty icon={<ShieldCheck size={24} />} title={`No request with the state “${words[status]}”`} />;
  return (
    <Empty
      icon={<ShieldCheck size={24} />}
      title="Nothing waits for approval"
      command="berth tokens create agent --approval-mode"
    >
      An agent or a script with a token in approval mode does its work alone, but deletes and restores nothing before a
      person has approved it. Its requests appear here.
    </Empty>
  );
}

function Request({ of }: { readonly of: Approval }) {
  const { id, status, summary, project, method, path } = of;
  return (
    <li className="flex flex-wrap items-start gap-x-4 gap-y-2 px-4 py-3 text-sm">
      <span className="w-24 shrink-0">
        {status === "pending" ? <Status tone="warn">Waiting</Status> : <State of={status} />}
      </span>
      <div className="flex min-w-0 flex-1 flex-col gap-0.5 max-sm:order-1 max-sm:basis-full">
        <p className="font-medium wrap-anywhere">
          <Dated>{summary}</Dated>
          {project !== null && summary !== `Delete the project ${project}` && (
            <>
              {" in "}
              <Link
                to="/projects/$slug"
                params={{ slug: project }}
                className="underline decoration-line underline-offset-2 hover:text-accent"
              >
                {project}
              </Link>
            </>
          )}
        </p>
        <p className="text-muted">
          <Course of={of} />
        </p>
        <details className="mt-0.5 text-xs text-faint">
          <summary className="w-fit hover:text-text">The request itself</summary>
          <p className="mt-1 wrap-anywhere text-muted">
            <Mono>{`${method} ${path}`}</Mono>
            <br />
            <Mono>{id}</Mono>
          </p>
        </details>
      </div>
      {status === "pending" && <Review of={of} />}
    </li>
  );
}

/** Shows which token requested it and when, and the outcome or the time of expiry. */
function Course({
  of: { status, requested_by: by, created_at, expires_at, decided_at, consumed_at },
}: {
  readonly of: Approval;
}) {
  const ends: Record<Approval["status"], ReactNode> = {
    pending: expires_at !== null && (
      <>
        ends <Ago at={expires_at} /> without a decision
      </>
    ),
    approved: expires_at !== null && (
      <>
        may be repeated once, ends <Ago at={expires_at} />
      </>
    ),
    denied: decided_at !== null && (
      <>
        denied <Ago at={decided_at} />
      </>
    ),
    consumed: consumed_at !== null && (
      <>
        done <Ago at={consumed_at} />
      </>
    ),
    expired: "ended without effect",
  };
  return (
    <>
      Requested by the token <Plain>{by.token_name}</Plain> <Ago at={created_at} />
      {" · "}
      {ends[status]}
    </>
  );
}

/** Links to the decision page, which the server renders. A user who may not decide sees who may. */
function Review({ of: { id, route: name, summary } }: { readonly of: Approval }) {
  const why = whyNotDecide(useMe(), name);
  if (why !== undefined)
    return <p className="w-56 text-right text-xs text-muted max-sm:order-2 max-sm:w-full max-sm:text-left">{why}</p>;
  return (
    <a
      href={`/session/decide/${id}`}
      aria-label={`Review: ${visible(summary)}`}
      className={`${buttonLook("plain")} ml-auto`}
    >
      Review
    </a>
  );
}
