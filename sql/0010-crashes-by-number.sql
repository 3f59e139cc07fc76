-- Crashes are counted by the numbers in their detail: older rows have them in their target alone.
update activity set detail = detail || jsonb_build_object(
  'deployment', substring(target from '^deployment (\d+)')::integer,
  'replica', substring(target from 'replica (\d+)$')::integer
)
where action in ('replica.crashed', 'replica.out_of_memory') and not detail ? 'replica';
