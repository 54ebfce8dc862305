create table if not exists hide (
  grade text primary key,
  square_feet numeric not null
);
create table if not exists saddle_order (
  id bigserial primary key,
  grade text not null references hide,
  square_feet numeric not null,
  reservation text not null,
  placed_at timestamptz not null default now()
);
insert into hide values ('bridle', 900000), ('harness', 900000), ('russet', 900000) on conflict do nothing;
