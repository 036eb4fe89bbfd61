-- Nobody reads sums of folded receipts by day: what is credited is in the statistics, and what was
-- folded in its coordinator's row.
DROP TABLE IF EXISTS receipt_day;
