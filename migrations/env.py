"""What Alembic runs: the migrations, on the connection that ``app.store.migrations`` hands over."""

from alembic import context

from app.store.migrations import ours
from app.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    include_object=ours,
)
with context.begin_transaction():
    context.run_migrations()
