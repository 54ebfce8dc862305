CREATE TABLE notes (id int PRIMARY KEY, title text NOT NULL);
INSERT INTO notes SELECT n, 'Note ' || n || ' on ' || (ARRAY['lamps','chairs','tables','doors'])[n % 4 + 1]
FROM generate_series(1, 400) n;
-- the sleep stands for the disks of the real server, which holds some hundred million notes
CREATE FUNCTION search_notes(q text) RETURNS TABLE (id int, title text, rank int) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep(0.04);
    RETURN QUERY SELECT n.id, n.title, length(n.title) FROM notes n WHERE n.title LIKE '%' || q || '%' ORDER BY n.id LIMIT 10;
END $$;
