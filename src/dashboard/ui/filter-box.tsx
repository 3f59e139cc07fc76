import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { Input } from "./field.tsx";

export interface FilterSearch {
  readonly q?: string;
}

export function FilterBox({ label }: { readonly label: string }) {
  const filter = useFilter();
  const navigate = useNavigate();
  const box = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(filter);
  // Typing changes the address a moment later, so the address may change the box only while it has no focus (after a link, for example).
  useEffect(() => {
    if (document.activeElement !== box.current) setText(filter);
  }, [filter]);
  return (
    <Input
      ref={box}
      type="search"
      aria-label={label}
      placeholder="Filter"
      data-search
      className="sm:max-w-64"
      value={text}
      onChange={({ target: { value } }) => {
        setText(value);
        const search = (others: object) => ({ ...others, q: value === "" ? undefined : value });
        void navigate({ to: ".", search: search as never, replace: true, resetScroll: false });
      }}
    />
  );
}

const mostWithoutFilter = 8;

/** Whether a list has a filter box. Once shown it stays: cleared, it must not vanish under the hands of who types. */
export function useHasFilter(rows: number): boolean {
  const text = useFilter();
  const [has, setHas] = useState(false);
  const needs = rows > mostWithoutFilter || text !== "";
  if (needs && !has) setHas(true);
  return has || needs;
}

export function useFilter(): string {
  const { q = "" }: FilterSearch = useSearch({ strict: false });
  return `${q}`;
}
