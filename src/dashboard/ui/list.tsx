import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import { Table, type TableProps } from "./table.tsx";
import { View, type ViewProps } from "./view.tsx";

interface Paged {
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly fetchNextPage: () => unknown;
}

interface ListProps<D, T> extends Omit<TableProps<T>, "rows"> {
  readonly of: ViewProps<D>["of"] & (Paged | object);
  readonly rows: (data: D) => readonly T[];
  /** Shown instead of a table without rows. */
  readonly empty?: ReactNode;
}

/** Shows what a call lists, in each of its states: loading, failed, empty, and a table with a button for older rows. */
export function List<D, T>({ of, rows, empty, ...table }: ListProps<D, T>) {
  return (
    <View of={of}>
      {(data) => {
        const all = rows(data);
        if (all.length === 0 && empty !== undefined) return empty;
        return (
          <>
            <Table rows={all} {...table} />
            {"hasNextPage" in of && <Older of={[of]} />}
          </>
        );
      }}
    </View>
  );
}

interface OlderProps {
  /** Lists whose older pages are loaded together. */
  readonly of: readonly Paged[];
  readonly label?: string;
}

export function Older({ of, label = "Show older" }: OlderProps) {
  const more = of.filter(({ hasNextPage }) => hasNextPage);
  if (more.length === 0) return null;
  const read = () => {
    for (const { fetchNextPage } of more) void fetchNextPage();
  };
  return (
    <div>
      <Button busy={more.some(({ isFetchingNextPage }) => isFetchingNextPage)} onClick={read}>
        {label}
      </Button>
    </div>
  );
}
