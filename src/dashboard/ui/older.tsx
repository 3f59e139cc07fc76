import { Button } from "./button.tsx";

interface OlderProps {
  /** Lists whose older pages belong together. */
  readonly of: readonly {
    readonly hasNextPage: boolean;
    readonly isFetchingNextPage: boolean;
    readonly fetchNextPage: () => unknown;
  }[];
}

/** Reads the next page of what there is more of. */
export function Older({ of }: OlderProps) {
  const more = of.filter(({ hasNextPage }) => hasNextPage);
  if (more.length === 0) return null;
  const read = () => {
    for (const { fetchNextPage } of more) void fetchNextPage();
  };
  return (
    <div>
      <Button busy={more.some(({ isFetchingNextPage }) => isFetchingNextPage)} onClick={read}>
        Show older
      </Button>
    </div>
  );
}
