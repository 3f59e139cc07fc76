import { getRouteApi } from "@tanstack/react-router";
import { call, useClient } from "../../data/api.ts";
import { Entries } from "../../ui/entries.tsx";
import { Page } from "../../ui/page.tsx";

const route = getRouteApi("/activity");

export function ActivityPage() {
  const client = useClient();
  const { kind } = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <Page
      title="Activity"
      lead="Every change in the organization with who made it. Values of variables and secrets are in none of it."
    >
      <Entries
        namesProjects
        queryKey={["activity.list", {}, kind]}
        read={async (cursor, signal) => {
          const page = await call(client, "activity.list", { query: { cursor, kind }, signal });
          return { entries: page.activity, next: page.next_cursor };
        }}
        kind={kind}
        onKind={(next) => void navigate({ search: next === undefined ? {} : { kind: next }, replace: true })}
        empty="Nothing happened yet."
      />
    </Page>
  );
}
