import type { Answer } from "../../../contract/client.ts";
import { useCall, useMe, whyNot } from "../../data/api.ts";
import type { RouteName } from "../../../contract/routes.ts";
import { Command } from "../../ui/button.tsx";
import { FilterBox, useFilter } from "../../ui/filter-box.tsx";
import { Page, View } from "../../ui/page.tsx";
import { Tag, Mono, Prose } from "../../ui/text.tsx";
import { Table, type Column } from "../../ui/table.tsx";

type Route = Answer<"self-description.capabilities">["routes"][number];

/** The page that shows an agent or a script how to do everything that this dashboard does. */
export function ApiPage() {
  const capabilities = useCall("self-description.capabilities", {});
  const text = useFilter();
  const me = useMe();
  return (
    <Page
      title="API"
      lead="A token can do everything that the dashboard does. Agents connect to /mcp at this address (Model Context Protocol)."
    >
      <div className="grid gap-2 lg:grid-cols-2">
        <Command>{`curl -H "Authorization: Bearer $BERTH_TOKEN" ${location.origin}/v1/overview`}</Command>
        <Command>berth mcp</Command>
      </div>
      <FilterBox label="Filter routes" />
      <View of={capabilities}>
        {({ routes }) => (
          <Table
            caption="Routes"
            rows={routes.filter((each) => JSON.stringify(each).toLowerCase().includes(text.toLowerCase()))}
            columns={columnsFor((name) => whyNot(me, name as RouteName))}
            keyOf={({ name }) => name}
          />
        )}
      </View>
    </Page>
  );
}

function columnsFor(why: (name: string) => string | undefined): readonly Column<Route>[] {
  return [
    { head: "Method", cell: ({ method }) => <Mono className="text-muted">{method}</Mono> },
    {
      head: "Path",
      grow: true,
      cell: ({ path, summary }) => (
        <span className="flex min-w-0 flex-col leading-4.5">
          <Mono className="truncate font-medium max-sm:wrap-anywhere max-sm:whitespace-normal">{path}</Mono>
          <span className="truncate text-xs text-faint max-sm:whitespace-normal">
            <Prose>{summary}</Prose>
          </span>
        </span>
      ),
    },
    {
      head: "Scope",
      wide: true,
      cell: ({ scope }) => (scope === null ? <span className="text-faint">–</span> : <Tag>{scope}</Tag>),
    },
    {
      head: "Your token",
      end: true,
      wide: true,
      cell: ({ name }) =>
        why(name) === undefined ? (
          <span className="text-ok">allowed</span>
        ) : (
          <span className="text-faint" title={why(name)}>
            not allowed
          </span>
        ),
    },
  ];
}
