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

export function useFilter(): string {
  const { q = "" }: FilterSearch = useSearch({ strict: false });
  return `${q}`;
}
