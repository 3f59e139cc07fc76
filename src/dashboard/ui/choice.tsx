interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly options: readonly T[];
  readonly value: T;
  readonly onChange: (value: T) => void;
  readonly words?: Partial<Record<T, string>>;
}

/** A choice of one among a few options that are all visible. */
export function Choice<T extends string>({ label, options, value, onChange, words = {} }: ChoiceProps<T>) {
  return (
    <div
      role="group"
      aria-label={label}
      className="inline-flex max-w-full flex-wrap rounded-md border border-line bg-panel p-0.5"
    >
      {options.map((option) => (
        <button
          key={option}
          type="button"
          aria-pressed={option === value}
          onClick={() => onChange(option)}
          className="target h-7 rounded-sm px-2.5 text-sm text-muted transition-colors hover:text-text aria-pressed:bg-raised aria-pressed:font-medium aria-pressed:text-text aria-pressed:shadow-[0_0_0_1px_var(--line)]"
        >
          {words[option] ?? option}
        </button>
      ))}
    </div>
  );
}
