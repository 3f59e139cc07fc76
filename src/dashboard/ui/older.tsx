import { Button } from "./button.tsx";

interface OlderProps {
  /** Lists whose older pages are loaded together. */
  readonly of: readonly {
    readonly hasNextPage: boolean;
    readonly isFetchingNextPage: boolean;
    readonly fetchNextPage: () => unknown;
  }[];
  readonly label?: string;
}

/** A button that loads the next page of each list that has one. */
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
