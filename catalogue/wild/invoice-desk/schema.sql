create table orders (
    id      int primary key,
    name    text not null,
    country text not null default 'AT'
);

create table order_lines (
    order_id int not null references orders,
    line     int not null,
    title    text not null,
    cents    int not null,
    primary key (order_id, line)
);

create table invoices (
    id        bigint generated always as identity primary key,
    order_id  int not null references orders,
    cents     int not null,
    signature text not null,
    issued_at timestamptz not null default now()
);

insert into orders select n, 'Customer ' || n from generate_series(1, 5000) n;
insert into order_lines
select o, l, 'Article ' || (o * 7 + l) % 400, 500 + (o * 37 + l * 101) % 9000
from generate_series(1, 5000) o, generate_series(1, 4) l;
analyze;
