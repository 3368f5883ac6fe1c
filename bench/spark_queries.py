"""The Spark job of the row `spark`: spark_queries.py ENDPOINT BUCKET make|run, under the Python of the client `spark`.

`make` stores a small star schema after TPC-DS. `run` asks three of its questions and prints, as JSON, the seconds of
each and what it found. Starting Spark, and compiling the questions once on nothing, are not counted.
"""

import json
import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql.functions import col, date_add, expr, lit, pmod, xxhash64, year

ENDPOINT, BUCKET, WHAT = sys.argv[1:]
SALES, FILES, DAYS, ITEMS, STORES = 6_000_000, 96, 1826, 18_000, 102
COLUMNS = {  # of sales -> how many values
    "ss_sold_date_sk": DAYS,
    "ss_item_sk": ITEMS,
    "ss_store_sk": STORES,
    "ss_customer_sk": 500_000,
    "ss_quantity": 100,
    "ss_list_price": 20_000,  # money in cents: sums do not depend on their order
    "ss_sales_price": 20_000,
    "ss_ext_sales_price": 2_000_000,
    "ss_coupon_amt": 500_000,
    "ss_net_profit": 1_000_000,
}
TABLES = ("store_sales", "date_dim", "item", "store")
QUESTIONS = {
    "brands of a month (after query 3)": """
        SELECT d_year, i_brand, sum(ss_ext_sales_price) AS sales, sum(ss_net_profit) AS profit
        FROM store_sales JOIN date_dim ON d_date_sk = ss_sold_date_sk JOIN item ON i_item_sk = ss_item_sk
        WHERE d_moy = 11 GROUP BY d_year, i_brand ORDER BY d_year, sales DESC, i_brand LIMIT 100""",
    "averages per category and state (after query 27)": """
        SELECT i_category, s_state, sum(ss_quantity), sum(ss_list_price), sum(ss_coupon_amt), sum(ss_sales_price)
        FROM store_sales JOIN item ON i_item_sk = ss_item_sk JOIN store ON s_store_sk = ss_store_sk
        JOIN date_dim ON d_date_sk = ss_sold_date_sk
        WHERE d_year = 2001 GROUP BY i_category, s_state ORDER BY i_category, s_state""",
    "stores by day of the week (after query 43)": """
        SELECT s_store_sk, d_dow, sum(ss_sales_price * ss_quantity) AS sales, count(*), max(ss_customer_sk)
        FROM store_sales JOIN date_dim ON d_date_sk = ss_sold_date_sk JOIN store ON s_store_sk = ss_store_sk
        WHERE d_year >= 2000 GROUP BY s_store_sk, d_dow ORDER BY s_store_sk, d_dow""",
}


def session():
    builder = SparkSession.builder.master("local[2]")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "4",
        "spark.hadoop.fs.s3a.endpoint": ENDPOINT,
        "spark.hadoop.fs.s3a.endpoint.region": "eu-west-1",
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def sales(spark, count, files):
    columns = [
        pmod(xxhash64("id", lit(name)), lit(values)).cast("int").alias(name) for name, values in COLUMNS.items()
    ]
    return spark.range(count, numPartitions=files).select(col("id").alias("ss_ticket_number"), *columns)


def dimensions(spark):
    day = date_add(lit("1998-01-01").cast("date"), col("id").cast("int"))
    return {
        "date_dim": spark.range(DAYS).select(
            col("id").cast("int").alias("d_date_sk"),
            year(day).alias("d_year"),
            expr("month(date_add(DATE'1998-01-01', int(id)))").alias("d_moy"),
            expr("dayofweek(date_add(DATE'1998-01-01', int(id)))").alias("d_dow"),
        ),
        "item": spark.range(ITEMS).selectExpr(
            "int(id) AS i_item_sk", "concat('brand ', id % 700) AS i_brand", "concat('kind ', id % 10) AS i_category"
        ),
        "store": spark.range(STORES).selectExpr("int(id) AS s_store_sk", "concat('state ', id % 9) AS s_state"),
    }


def make(spark):
    tables = {"store_sales": sales(spark, SALES, FILES)}
    tables |= {name: table.coalesce(1) for name, table in dimensions(spark).items()}
    for name, table in tables.items():
        table.write.parquet(f"s3a://{BUCKET}/{name}")


def ask(spark, question):
    return [[str(value) for value in row] for row in spark.sql(question).collect()]


def run(spark):
    for name, table in {"store_sales": sales(spark, 1000, 2), **dimensions(spark)}.items():
        table.createOrReplaceTempView(name)
    for question in QUESTIONS.values():
        ask(spark, question)
    found = {}
    for name, question in QUESTIONS.items():
        begin = time.monotonic()
        for table in TABLES:
            spark.read.parquet(f"s3a://{BUCKET}/{table}").createOrReplaceTempView(table)
        rows = ask(spark, question)
        found[name] = {"seconds": time.monotonic() - begin, "rows": rows}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    {"make": make, "run": run}[WHAT](session())
