from annuity import create_app

app = create_app()
