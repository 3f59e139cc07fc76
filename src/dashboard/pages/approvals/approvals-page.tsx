import { getRouteApi } from "@tanstack/react-router";
import { ShieldCheck } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { approvalStates, statesOf } from "../../../contract/states.ts";
import { usePages } from "../../data/use-pages.ts";
import { Select } from "../../ui/field.tsx";
import { Older } from "../../ui/older.tsx";
import { Page } from "../../ui/page.tsx";
import { State } from "../../ui/status.tsx";
import { Table, timeColumn, type Column } from "../../ui/table.tsx";
import { Mono, Plain } from "../../ui/text.tsx";
import { Empty, View } from "../../ui/view.tsx";

type Approval = Answer<"approvals.list">["approvals"][number];

export interface ApprovalsSearch {
  readonly status?: Approval["status"];
}

const route = getRouteApi("/approvals");

/**
 * The page of actions that wait for a person's approval. It only lists them: a person decides through the link that was sent to them, which
 * no page and no response of the API contains.
 */
export function ApprovalsPage() {
  const { status } = route.useSearch();
  const navigate = route.useNavigate();
  const approvals = usePages("approvals.list", { query: { status } });
  return (
    <Page
      title="Approvals"
      lead="Tokens in approval mode wait here before they delete or restore anything. A person decides behind the link that the operator's channel delivered: by e-mail, webhook, or in the platform's log."
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
            <option key={each}>{each}</option>
          ))}
        </Select>
      </div>
      <View of={approvals}>
        {({ pages }) =>
          pages[0]?.approvals.length === 0 ? (
            <Empty icon={<ShieldCheck size={24} />} title="Nothing waits">
              Give an agent a token in approval mode, and what it wants to delete shows up here first.
            </Empty>
          ) : (
            <>
              <Table
                caption="Approvals"
                rows={pages.flatMap((page) => page.approvals)}
                columns={columns}
                keyOf={({ id }) => id}
              />
              <Older of={[approvals]} />
            </>
          )
        }
      </View>
    </Page>
  );
}

const columns: readonly Column<Approval>[] = [
  { head: "State", cell: ({ status }) => <State of={status} /> },
  {
    head: "Request",
    grow: true,
    cell: ({ method, path, target }) => (
      <span className="flex min-w-0 flex-col leading-4.5">
        <Mono className="truncate">{`${method} ${path}`}</Mono>
        {target !== null && (
          <span className="truncate text-xs text-faint">
            <Plain>{target}</Plain>
          </span>
        )}
      </span>
    ),
  },
  { head: "By", wide: true, cell: ({ requested_by: by }) => <Plain>{by.token_name}</Plain> },
  timeColumn("Asked", (row) => row.created_at),
  timeColumn("Ends", (row) => row.expires_at),
];
